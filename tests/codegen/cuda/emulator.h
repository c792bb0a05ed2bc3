// Runs CUDA C on the host: the threads of a block are fibers that yield where threads wait.
#include <limits>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
#define __grid_constant__

struct Dim3 {
  int x, y, z;
};
static Dim3 threadIdx, blockIdx;
// Some neighbouring blocks run together, each with memory of its own; their fibers follow in order.
static const int BLOCKS = 4, FIBERS = 1024;
alignas(1024) static unsigned char shared_memories[BLOCKS][1 << 18];
static int threads_of_block;
#define shared_memory shared_memories[current / threads_of_block]
#define __cluster_dims__(...)

enum { READY, WAITING, EXCHANGING, DONE };
struct Fiber {
  ucontext_t context;
  char* stack;
  int state, line, parity;
  uint64_t slot[2];
};
static const int STACK = 1 << 16;
static Fiber fibers[FIBERS];
static ucontext_t scheduler;
static int current;
static void (*body)(void**);
static void** arguments;
static const char* failure;

static void yield(int state, int line) {
  fibers[current].state = state;
  fibers[current].line = line;
  swapcontext(&fibers[current].context, &scheduler);
}

static void wait_for_block(int line) { yield(WAITING, line); }
#define __syncthreads() wait_for_block(__LINE__)
#define sync_cluster() wait_for_block(__LINE__)

template <typename T> static T exchanged(T value, int distance, int line) {
  static_assert(sizeof(T) <= 8, "a register or two");
  Fiber& mine = fibers[current];
  int at = mine.parity;
  memcpy(&mine.slot[at], &value, sizeof(T));
  mine.parity = !at;
  yield(EXCHANGING, line);
  T got;
  memcpy(&got, &fibers[current ^ distance].slot[at], sizeof(T));
  return got;
}
#define __shfl_xor_sync(mask, value, distance) exchanged(value, distance, __LINE__)

// Values that instructions multiply; TF32 has 19 bits of a float.
struct float16;
struct bfloat16;
static float to_float(float16);
static float to_float(bfloat16);
template <typename T> static float operand(const T& x) { return to_float(x); }
static float operand(float x) {
  unsigned bits;
  memcpy(&bits, &x, 4);
  bits &= ~0x1fffu;
  memcpy(&x, &bits, 4);
  return x;
}
static int operand(signed char x) { return x; }
static int operand(unsigned char x) { return x; }

// mma.sync.m16n8 as the PTX ISA draws it: a lane is a group (row of A, column of B) and its place
// in it; registers hold *Near* neighbours along the reduction.
template <int Near, typename Acc, typename A, typename B>
static void mma(Acc (&c)[4], const A (&a)[4 * Near], const B (&b)[2 * Near], int line) {
  static Acc shared_a[2][FIBERS][16], shared_b[2][FIBERS][8];
  Fiber& mine = fibers[current];
  int at = mine.parity;
  for (int n = 0; n < 4 * Near; ++n) shared_a[at][current][n] = operand(a[n]);
  for (int n = 0; n < 2 * Near; ++n) shared_b[at][current][n] = operand(b[n]);
  mine.parity = !at;
  yield(EXCHANGING, line);
  int warp = current / 32 * 32, group = current % 32 / 4, place = current % 4;
  for (int r = 0; r < 4; ++r) {
    int column = place * 2 + r % 2, half = r / 2;
    Acc total = 0;
    for (int k = 0; k < 8 * Near; ++k) {
      int high = k / (4 * Near), middle = k / Near % 4, low = k % Near;
      total += shared_a[at][warp + group * 4 + middle][high * 2 * Near + half * Near + low] *
               shared_b[at][warp + column * 4 + middle][high * Near + low];
    }
    c[r] += total;
  }
}

// ldmatrix: eight lanes name the rows of a matrix, of which each lane gets two neighbours in a row,
// or, turned, in a column.
template <bool Turned, int N> static void load_matrices(unsigned (&to)[N], const void* row) {
  static const char* rows[2][FIBERS];
  Fiber& mine = fibers[current];
  int at = mine.parity;
  rows[at][current] = (const char*)row;
  mine.parity = !at;
  yield(EXCHANGING, __LINE__);
  int warp = current / 32 * 32, group = current % 32 / 4, place = current % 4;
  for (int n = 0; n < N; ++n) {
    const char** named = rows[at] + warp + 8 * n;
    if ((uintptr_t)named[group] % 16) failure = "a row of a matrix starts between 16 bytes";
    if (!Turned) memcpy(&to[n], named[group] + 4 * place, 4);
    for (int half = 0; Turned && half < 2; ++half) {
      memcpy((char*)&to[n] + 2 * half, named[2 * place + half] + 2 * group, 2);
    }
  }
}

// Copies arrive when they are waited for, not before.
struct Copy {
  void* to;
  int bytes;
  unsigned char data[16];
  int group;
};
static const int COPIES = 1 << 12;
static Copy* copies[FIBERS];
static int started[FIBERS], committed[FIBERS];

template <typename T> static void copy_async(T* to, const T* from, bool some = true) {
  if (!copies[current]) copies[current] = (Copy*)malloc(COPIES * sizeof(Copy));
  Copy& copy = copies[current][started[current]++];
  copy.to = to, copy.bytes = sizeof(T), copy.group = committed[current];
  memset(copy.data, 0, sizeof(copy.data));
  if (some) memcpy(copy.data, from, sizeof(T));
  memset(to, 0xff, sizeof(T));
}
static void commit_copies() { ++committed[current]; }
template <int Pending> static void wait_copies() {
  int left = 0;
  for (int n = 0; n < started[current]; ++n) {
    Copy& copy = copies[current][n];
    if (copy.group < committed[current] - Pending) {
      memcpy(copy.to, copy.data, copy.bytes);
    } else {
      copies[current][left++] = copy;
    }
  }
  started[current] = left;
}

// wgmma.mma_async: done when it is waited for, of what is in shared memory then; until that the sums
// hold nothing.  A descriptor has 18 bits of an address, of which the others are kept here.
struct Product {
  void *sums, *kept;
  size_t bytes;
  uintptr_t a, b;
  unsigned long long form_a, form_b;
  void (*run)(const Product&);
  int group;
  const void* registers;
};
static const int PRODUCTS = 1 << 10;
static Product* products[FIBERS];
static int under_way[FIBERS], groups[FIBERS];
static uintptr_t named[1 << 14];

static unsigned long long matrix_at(const void* at, unsigned long long form) {
  const uintptr_t address = (uintptr_t)at, low = (address & 0x3ffff) >> 4;
  if (address % 16) failure = "a matrix starts between 16 bytes";
  named[low] = address;
  return form | low;
}

// Where element (mn, k) of a matrix is: the canonical layouts of the PTX ISA in units of 16 bytes,
// then the units of a part, swizzled by bits 7 to 9 of the address.
static uintptr_t placed(uintptr_t start, unsigned long long form, int mn, int k, int size, bool across) {
  const int lead = (int)(form >> 16 & 0x3fff) << 4, stride = (int)(form >> 32 & 0x3fff) << 4;
  const int mode = (int)(form >> 62), near = 16 / size, part = mode ? 16 >> mode : 1;
  if (!mode) failure = "matrices are swizzled here";
  uintptr_t at = start;
  if (across) {
    at += mn % near * size + mn / near % part * 16 + mn / (near * part) * lead;
    at += k % 8 * part * 16 + k / 8 * stride;
  } else {
    at += mn % 8 * part * 16 + mn / 8 * stride + k / near * 16 + k % near * size;
  }
  return at ^ (at >> 7 & (part - 1)) << 4;
}

template <typename Acc, typename A, typename B, int N, int Depth, bool RowsFirst, bool ColumnsFirst>
static void done_later(const Product& p) {
  Acc* c = (Acc*)p.kept;
  const int lane = current % 128, group = lane % 32 / 4, place = lane % 4;
  for (int r = 0; r < N / 2; ++r) {
    const int row = lane / 32 * 16 + r / 2 % 2 * 8 + group, column = r / 4 * 8 + place * 2 + r % 2;
    Acc total = 0;
    for (int k = 0; k < Depth; ++k) {
      const A* a = (const A*)placed(p.a, p.form_a, row, k, sizeof(A), RowsFirst);
      const B* b = (const B*)placed(p.b, p.form_b, column, k, sizeof(B), ColumnsFirst);
      total += operand(*a) * operand(*b);
    }
    c[r] += total;
  }
}

template <typename A, typename B, int N, int Depth, bool RowsFirst, bool ColumnsFirst, typename Acc>
static void group_product(Acc (&c)[N / 2], unsigned long long a, unsigned long long b) {
  if (!products[current]) products[current] = (Product*)malloc(PRODUCTS * sizeof(Product));
  Product* mine = products[current];
  void* kept = 0;
  for (int n = 0; n < under_way[current]; ++n) {
    if (mine[n].sums == c) kept = mine[n].kept;
  }
  if (!kept) {
    kept = malloc(sizeof(c));
    memcpy(kept, c, sizeof(c));
    memset(c, 0xff, sizeof(c));
  }
  mine[under_way[current]++] = {c, kept, sizeof(c), named[a & 0x3fff], named[b & 0x3fff], a, b,
      done_later<Acc, A, B, N, Depth, RowsFirst, ColumnsFirst>, groups[current]};
}

// The same with A in registers, which must not change until then: rows of the lane, as they were.
template <typename Acc, typename A, typename B, int N, int Depth, bool ColumnsFirst>
static void held_done_later(const Product& p) {
  Acc* c = (Acc*)p.kept;
  A* rows = (A*)p.a;
  if (memcmp(rows + 2 * Depth, p.registers, Depth / 2 * sizeof(A))) failure = "A changes too early";
  for (int r = 0; r < N / 2; ++r) {
    const int column = r / 4 * 8 + current % 4 * 2 + r % 2;
    Acc total = 0;
    for (int k = 0; k < Depth; ++k) {
      const B* b = (const B*)placed(p.b, p.form_b, column, k, sizeof(B), ColumnsFirst);
      total += operand(rows[r / 2 % 2 * Depth + k]) * operand(*b);
    }
    c[r] += total;
  }
  free(rows);
}

template <typename A, typename B, int N, int Depth, bool ColumnsFirst, typename Acc>
static void held_product(
    Acc (&c)[N / 2], const A (&a)[Depth / 2], unsigned long long b, int line) {
  static A shared[2][FIBERS][Depth / 2];
  Fiber& mine = fibers[current];
  int at = mine.parity;
  memcpy(shared[at][current], a, sizeof(a));
  mine.parity = !at;
  yield(EXCHANGING, line);
  A* rows = (A*)malloc(5 * Depth / 2 * sizeof(A));
  for (int half = 0; half < 2; ++half) {
    for (int k = 0; k < Depth; ++k) {
      rows[half * Depth + k] = shared[at][current / 4 * 4 + k / 2 % 4][k / 8 * 4 + half * 2 + k % 2];
    }
  }
  memcpy(rows + 2 * Depth, a, sizeof(a));
  group_product<A, B, N, Depth, false, ColumnsFirst>(c, 0, b);
  Product& product = products[current][under_way[current] - 1];
  product.a = (uintptr_t)rows, product.registers = a;
  product.run = held_done_later<Acc, A, B, N, Depth, ColumnsFirst>;
}
static void fence_shared() {}
static void fence_registers() {}
template <typename T> static void settled(T&) {}
static void commit_products() { ++groups[current]; }
template <int Pending> static void wait_products() {
  Product* mine = products[current];
  int left = 0;
  for (int n = 0; n < under_way[current]; ++n) {
    const Product p = mine[n];
    if (p.group >= groups[current] - Pending) {
      mine[left++] = p;
      continue;
    }
    p.run(p);
    bool last = true;
    for (int later = n + 1; later < under_way[current]; ++later) last &= mine[later].sums != p.sums;
    if (last) memcpy(p.sums, p.kept, p.bytes), free(p.kept);
  }
  under_way[current] = left;
}

// Boxes that the copy engine moves: they arrive when their barrier is waited for, not before.
struct TensorMap {
  const char* start;
  int size, rank, swizzle;
  long long shape[5];
  int box[5];
};
struct Box {
  unsigned long long* barrier;
  char* to;
  std::vector<char> bytes;
  int units;
};
static std::vector<Box> boxes;

// A barrier counts its phases in the upper half; the lower half is 1 once the first thread arrived.
static void init_barrier(unsigned long long* barrier) { *barrier = 0; }
static void arrive(unsigned long long* barrier, unsigned bytes) {
  if (*barrier & 1) failure = "a thread arrives twice in one phase of a barrier";
  *barrier |= 1 | bytes << 1;
}
static bool is_complete(unsigned long long* barrier) {
  unsigned moved = 0;
  for (const Box& box : boxes) moved += box.barrier == barrier ? box.bytes.size() : 0;
  return (*barrier & 1) && moved == (unsigned)*barrier >> 1;
}
static void wait_for_phase(unsigned long long* barrier, unsigned odd) {
  for (int turn = 0; (*barrier >> 32 & 1) == odd; ++turn) {
    if (!is_complete(barrier)) {
      if (turn == 10000) failure = "nothing ends the phase of a barrier";
      yield(turn == 10000 ? DONE : READY, 0);
      continue;
    }
    std::vector<Box> left;
    for (Box& box : boxes) {
      if (box.barrier != barrier) {
        left.push_back(box);
        continue;
      }
      for (size_t n = 0; n < box.bytes.size(); ++n) {
        const uintptr_t at = (uintptr_t)box.to + n;
        *(char*)(at ^ (at >> 7 & box.units - 1) << 4) = box.bytes[n];
      }
    }
    boxes = left;
    *barrier = (*barrier >> 32) + 1 << 32;
  }
}

// The same place in the memory of another block that runs together with this one.
template <typename T> static T* in_block(T* at, int block) {
  return (T*)((unsigned char*)at - shared_memory + shared_memories[block]);
}

template <int Blocks, typename... Places>
static void copy_box(const TensorMap& map, void* to, unsigned long long* barrier, Places... places) {
  const long long first[] = {places...};  // innermost first
  if (sizeof...(places) != map.rank) failure = "a box has other dimensions than its tensor";
  const int row = map.box[map.rank - 1] * map.size;
  if (row != map.swizzle) failure = "rows of a box are not as long as they are swizzled";
  if ((uintptr_t)to % (8 * map.swizzle)) failure = "a box starts where its pattern does not";
  if ((uintptr_t)map.start % 16 || map.shape[map.rank - 1] * map.size % 16) {
    failure = "a tensor that is copied in boxes is not aligned to 16 bytes";
  }
  Box box = {barrier, (char*)to, {}, map.swizzle / 16};
  int at[5] = {};
  for (bool more = true; more;) {
    long long place = 0;
    bool inside = true;
    for (int d = 0; d < map.rank; ++d) {
      const long long index = first[map.rank - 1 - d] + at[d];
      inside &= index >= 0 && index < map.shape[d];
      place = place * map.shape[d] + index;
    }
    for (int n = 0; n < map.size; ++n) {
      box.bytes.push_back(inside ? map.start[place * map.size + n] : 0);
    }
    more = false;
    for (int d = map.rank - 1; d >= 0 && !more; --d) {
      more = ++at[d] < map.box[d];
      if (!more) at[d] = 0;
    }
  }
  for (int block = 0; block < Blocks; ++block) {
    if (Blocks > 1) box.to = in_block((char*)to, block), box.barrier = in_block(barrier, block);
    memset(box.to, 0xff, box.bytes.size());
    boxes.push_back(box);
  }
}

static void run_fiber() {
  body(arguments);
  yield(DONE, 0);
}

// Goes on with the fibers [first, last), which are all in *state* at one line; false otherwise.
static bool released(int first, int last, int state) {
  for (int t = first; t < last; ++t) {
    if (fibers[t].state != state || fibers[t].line != fibers[first].line) return false;
  }
  for (int t = first; t < last; ++t) fibers[t].state = READY;
  return true;
}

static void run_blocks(int blocks, Dim3 first, int x, int y, int z, uint32_t* seed) {
  int count = blocks * x * y * z, order[FIBERS];
  threads_of_block = x * y * z;
  for (int t = 0; t < count; ++t) {
    Fiber& f = fibers[t];
    if (!f.stack) f.stack = (char*)malloc(STACK);
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack;
    f.context.uc_stack.ss_size = STACK;
    f.context.uc_link = 0;
    f.state = READY, f.parity = 0, order[t] = t;
    started[t] = committed[t] = under_way[t] = groups[t] = 0;
    makecontext(&f.context, run_fiber, 0);
  }
  for (;;) {
    // Threads run in another order each time, so that a missing barrier shows.
    for (int t = count - 1; t > 0; --t) {
      *seed = *seed * 1664525u + 1013904223u;
      int other = (int)((*seed >> 8) % (uint32_t)(t + 1)), kept = order[t];
      order[t] = order[other], order[other] = kept;
    }
    for (int n = 0; n < count; ++n) {
      int t = order[n];
      if (fibers[t].state != READY) continue;
      current = t;
      threadIdx.x = t % x, threadIdx.y = t / x % y, threadIdx.z = t / x / y % z;
      blockIdx = first, blockIdx.x += t / threads_of_block;
      swapcontext(&scheduler, &fibers[t].context);
    }
    if (released(0, count, DONE)) return;
    bool moved = released(0, count, WAITING);
    for (int t = 0; t < count; ++t) moved |= fibers[t].state == READY;
    for (int warp = 0; warp < count && !moved; warp += 32) {
      int last = warp + 32 < count ? warp + 32 : count;
      if (fibers[warp].state == EXCHANGING) moved |= released(warp, last, EXCHANGING);
    }
    if (!moved) {
      failure = "threads of a block wait for each other in different places";
      return;
    }
  }
}

// 0, or what went wrong.
static const char* launch(
    void (*kernel)(void**), void** args, const int* grid, const int* block, int together = 1) {
  uint32_t seed = 1;
  body = kernel, arguments = args, failure = 0;
  for (int z = 0; z < grid[2]; ++z)
    for (int y = 0; y < grid[1]; ++y)
      for (int x = 0; x < grid[0]; x += together) {
        memset(shared_memories, 0xff, sizeof(shared_memories[0]) * together);
        run_blocks(together, {x, y, z}, block[0], block[1], block[2], &seed);
        if (failure) return failure;
      }
  return 0;
}

// What CUDA has and the host has not.
template <typename To, typename From> static To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From), "");
  To to;
  memcpy(&to, &x, sizeof(To));
  return to;
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selected) {
  const uint64_t both = (uint64_t)b << 32 | a;
  unsigned found = 0;
  for (int n = 0; n < 4; ++n) found |= (unsigned)(both >> (selected >> 4 * n & 7) * 8 & 255) << 8 * n;
  return found;
}
static inline float __int_as_float(int x) { return bits_as<float>(x); }
static inline int __float_as_int(float x) { return bits_as<int>(x); }
static inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static inline double __longlong_as_double(long long x) { return bits_as<double>(x); }
static inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
template <typename To, typename From> static To nearest(From x) {
  const To low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
  return x <= (From)low ? low : x >= (From)high ? high : (To)x;
}
static inline int __float2int_rz(float x) { return nearest<int>(x); }
static inline int __double2int_rz(double x) { return nearest<int>(x); }
static inline long long __float2ll_rz(float x) { return nearest<long long>(x); }
static inline long long __double2ll_rz(double x) { return nearest<long long>(x); }
static inline unsigned long long __float2ull_rz(float x) { return nearest<unsigned long long>(x); }
static inline unsigned long long __double2ull_rz(double x) { return nearest<unsigned long long>(x); }
template <typename From> static float towards_zero(From x) {
  const float near = (float)x;
  return fabsl((long double)near) > fabsl((long double)x) ? nextafterf(near, 0) : near;
}
static inline float __double2float_rz(double x) { return towards_zero(x); }
static inline float __int2float_rz(int x) { return towards_zero(x); }
static inline float __uint2float_rz(unsigned x) { return towards_zero(x); }
static inline float __ll2float_rz(long long x) { return towards_zero(x); }
static inline float __ull2float_rz(unsigned long long x) { return towards_zero(x); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
template <typename T> static inline T min(T a, T b) { return a < b ? a : b; }
template <typename T> static inline T max(T a, T b) { return a > b ? a : b; }
