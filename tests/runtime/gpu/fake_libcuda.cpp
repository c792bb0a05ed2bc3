// The part of the CUDA driver that libraries use, on the host.  A module is the path of a library
// whose functions run_<kernel> run kernels (tests/codegen/cuda/emulator.h), then, after a 0, the
// name and the number of arguments of each.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

typedef uint64_t address;
typedef const char* (*Kernel)(void** arguments, int* grid, int* block);
struct Function {
  Kernel kernel;
  int arguments;
};
struct Module {
  void* library;
  std::map<std::string, int> arguments;
};
struct Graph {
  std::vector<std::function<int()>> work;
};
struct Stream {
  Graph* captured = nullptr;
};
static std::mutex one_at_a_time;

static int does(Stream* stream, std::function<int()> work) {
  if (stream->captured) return stream->captured->work.push_back(work), 0;
  return work();
}

// What was asked for, in order, for the test to read.
static void say(const char* what) {
  if (const char* path = getenv("FAKE_CUDA_LOG")) {
    FILE* file = fopen(path, "a");
    fprintf(file, "%s\n", what);
    fclose(file);
  }
}

// Whether the call is to fail: FAKE_CUDA_REFUSES is "<number> <what>", counted from 1.
static bool refused(const char* what) {
  static int count = 0;
  const char* asked = getenv("FAKE_CUDA_REFUSES");
  const char* name = asked ? strchr(asked, ' ') : nullptr;
  if (!name || strcmp(name + 1, what) || ++count != atoi(asked)) return false;
  return say("refused"), true;
}

// Something of the driver's that must be given back; what a call that fails returns is no such thing.
template <typename T>
static int made(const char* what, T* place, std::function<T()> make) {
  if (refused(what)) return memset(place, 0xee, sizeof(T)), 2;
  return say(what), *place = make(), 0;
}

// The driver ends before the libraries that loaded it, and refuses everything then.
static bool is_over = false;
static struct End {
  ~End() { is_over = true; }
} at_exit;

// How many GPUs there are.
static int gpus() {
  const char* asked = getenv("FAKE_CUDA_GPUS");
  return asked ? atoi(asked) : 1;
}

extern "C" {
int cuInit(unsigned) { return getenv("FAKE_CUDA_BROKEN") ? 100 : 0; }
int cuDeviceGetCount(int* count) { return *count = gpus(), 0; }
int cuDeviceGet(int* device, int number) { return *device = number, number < gpus() ? 0 : 101; }
int cuDevicePrimaryCtxRetain(void** context, int) { return say("retain"), *context = (void*)1, 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return say("release"), 0; }
int cuCtxPushCurrent_v2(void*) { return is_over ? 4 : 0; }
int cuCtxPopCurrent_v2(void**) { return 0; }
int cuModuleLoadData(Module** module, const char* image) {
  int failed = made<Module*>("module", module, [=] {
    auto* loaded = new Module{dlopen(image, RTLD_NOW | RTLD_LOCAL), {}};
    std::istringstream names(image + strlen(image) + 1);
    std::string name;
    for (int count; names >> name >> count;) loaded->arguments[name] = count;
    return loaded;
  });
  return failed ? failed : (*module)->library ? 0 : 209;
}
int cuModuleUnload(Module* module) { return say("end of module"), delete module, 0; }
int cuModuleGetFunction(Function** function, Module* module, const char* name) {
  if (!module->arguments.count(name)) return 500;
  void* found = dlsym(module->library, ("run_" + std::string(name)).c_str());
  return *function = new Function{(Kernel)found, module->arguments[name]}, found ? 0 : 500;
}
int cuFuncSetAttribute(Function*, int, int) { return refused("shared memory"); }
int cuMemAlloc_v2(address* memory, size_t size) {
  return !size || made<address>("memory", memory, [=] {
    void* held = aligned_alloc(256, (size + 255) / 256 * 256);
    return memset(held, 0xff, size), (address)held;
  });
}
int cuMemFree_v2(address memory) { return say("end of memory"), free((void*)memory), 0; }
// Done only when the default stream is waited for, as a copy from pageable memory may be.
static std::function<void()> copied = [] {};
int cuMemcpyHtoD_v2(address to, const void* from, size_t size) {
  if (refused("upload constants")) return 2;
  say("upload constants");
  return copied = [=] { memcpy((void*)to, from, size); }, 0;
}
int cuMemcpyAsync(address to, address from, size_t size, Stream*) {
  return memcpy((void*)to, (void*)from, size), 0;
}
int cuStreamCreate(Stream** stream, unsigned) {
  return made<Stream*>("stream", stream, [] { return new Stream; });
}
int cuStreamDestroy_v2(Stream* stream) { return say("end of stream"), delete stream, 0; }
int cuStreamSynchronize(Stream* stream) {
  if (!stream) copied();
  return refused("synchronise");
}
int cuStreamBeginCapture_v2(Stream* stream, int) {
  say("capture");
  return stream->captured = new Graph, 0;
}
int cuStreamEndCapture(Stream* stream, Graph** graph) {
  say("graph");
  *graph = stream->captured;
  return stream->captured = nullptr, 0;
}
int cuGraphInstantiateWithFlags(Graph** instance, Graph* graph, unsigned long long) {
  return made<Graph*>("instance", instance, [=] { return new Graph(*graph); });
}
int cuGraphDestroy(Graph* graph) { return say("end of graph"), delete graph, 0; }
int cuGraphExecDestroy(Graph* instance) { return say("end of instance"), delete instance, 0; }
int cuGraphLaunch(Graph* graph, Stream*) {
  if (refused("replay")) return 2;
  say("replay");
  for (auto& work : graph->work)
    if (int failed = work()) return failed;
  return 0;
}
// The emulated kernels know how their tensors are read, so that the address suffices.
int cuTensorMapEncodeTiled(uint64_t* map, int type, unsigned rank, address tensor, const uint64_t* extents,
                           const uint64_t* strides, const unsigned* box, const unsigned* steps,
                           int interleave, int swizzle, int promotion, int fill) {
  bool right = (uintptr_t)map % 64 == 0 && tensor % 16 == 0 && type <= 2 && rank <= 5 && !interleave;
  for (unsigned d = 0; d < rank; ++d) {
    right = right && extents[d] && box[d] && box[d] <= 256 && steps[d] == 1;
    if (d + 1 < rank) right = right && strides[d] && strides[d] % 16 == 0;
  }
  right = right && swizzle && box[0] << type == 16u << swizzle && !fill;
  if (!right || refused("map")) return 1;
  say("map");
  return *map = tensor, 0;
}
int cuLaunchKernel(Function* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned, Stream* stream, void** arguments, void**) {
  if (refused("launch")) return 2;
  say("launch");
  std::vector<void*> values;
  for (int k = 0; k < function->arguments; ++k) values.push_back(*(void**)arguments[k]);
  int grid[3] = {(int)gx, (int)gy, (int)gz}, block[3] = {(int)bx, (int)by, (int)bz};
  return does(stream, [=]() mutable {
    std::lock_guard<std::mutex> held(one_at_a_time);
    return function->kernel(values.data(), grid, block) ? 719 : 0;
  });
}
}
