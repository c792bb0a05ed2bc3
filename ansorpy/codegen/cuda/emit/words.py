"""Words that generated CUDA C must not use as names."""

from __future__ import annotations

from ansorpy.codegen.clike.names import Words

__all__ = ["WORDS"]

# Keywords of C++ and CUDA, and functions that generated code calls.
_RESERVED = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class
compl const const_cast constexpr continue decltype default delete do double dynamic_cast else enum
explicit export extern false float for friend goto if inline int long mutable namespace new noexcept
not not_eq nullptr operator or or_eq private protected public register reinterpret_cast return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true
try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
blockDim blockIdx gridDim threadIdx warpSize
arrive Boxes copy_box in_shared init_barrier sync_cluster TensorMap wait_for_phase
abs ceil copysign cos erf exp fabs floor fma fmod log max min norm pow rint rsqrt sin sqrt tanh
ceilf cosf erff expf fabsf floorf fmaf logf powf rintf rsqrtf sinf sqrtf tanhf
bfloat16 bits_of commit_copies commit_products copy_async divides_all dot_bf16 dot_s8s8 dot_u8s8
fence_registers fence_shared float16 float_div float_mod floor_div floor_mod leaves_bits
load_matrices matrix_at maximum minimum odd opposed packed power_of_two quotient rest scaled
set_bits settled shared_memory shift_left shift_right swizzled
to_bfloat16 to_float to_float16 to_int to_long to_odd to_unsigned_long turned unpacked vec Vec
wait_copies wait_products word word_at main
"""
WORDS = Words(frozenset(_RESERVED.split()), ("ldmatrix_", "mma_", "quad_", "wgmma_"))
"""The prefixes are those of functions that wrap one instruction."""
