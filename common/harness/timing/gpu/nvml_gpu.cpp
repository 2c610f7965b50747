#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "harness/timing/gpu/nvml.h"

namespace harness {
namespace {

// The few declarations of NVML that are used; its header is not part of every toolkit. NVML API Reference
// Guide, "Device Queries", "Field Value Queries",
// "NvmlClocksEventReasons", "Virtualization".
using NvmlDevice = void*;
constexpr int kNvmlSuccess = 0;
constexpr int kClockSm = 1;
constexpr int kTemperatureGpu = 0;
constexpr int kVirtualizationVgpu = 2;
constexpr unsigned kFieldPowerInstant =
    186;  // milliwatts, now; nvmlDeviceGetPowerUsage averages over a second
struct NvmlFieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  int type;
  int status;
  union {
    double as_double;
    unsigned as_unsigned;
    unsigned long long as_long;
  } value;
};
static_assert(sizeof(NvmlFieldValue) == 40, "nvmlFieldValue_t");

constexpr auto kPeriod = std::chrono::milliseconds(25);

struct Nvml {
  std::string problem;
  NvmlDevice device = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*power)(NvmlDevice, unsigned*) = nullptr;
  int (*temperature)(NvmlDevice, int, unsigned*) = nullptr;
  int (*reasons)(NvmlDevice, unsigned long long*) = nullptr;
  int (*fields)(NvmlDevice, int, NvmlFieldValue*) = nullptr;
  int (*power_limit)(NvmlDevice, unsigned*) = nullptr;
  int (*default_power_limit)(NvmlDevice, unsigned*) = nullptr;
  int (*mig_mode)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  int (*virtualization_mode)(NvmlDevice, int*) = nullptr;

  Nvml() {
    void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == nullptr) {
      problem = "libnvidia-ml.so.1 was not found";
      return;
    }
    int (*init)() = nullptr;
    int (*by_bus_id)(const char*, NvmlDevice*) = nullptr;
    auto find = [library](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    };
    find(init, "nvmlInit_v2");
    find(by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
    find(clock, "nvmlDeviceGetClockInfo");
    find(power, "nvmlDeviceGetPowerUsage");
    find(temperature, "nvmlDeviceGetTemperature");
    find(fields, "nvmlDeviceGetFieldValues");
    find(power_limit, "nvmlDeviceGetEnforcedPowerLimit");
    find(default_power_limit, "nvmlDeviceGetPowerManagementDefaultLimit");
    find(mig_mode, "nvmlDeviceGetMigMode");
    find(virtualization_mode, "nvmlDeviceGetVirtualizationMode");
    find(reasons, "nvmlDeviceGetCurrentClocksEventReasons");
    if (reasons == nullptr) find(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");  // its older name
    if (init == nullptr || by_bus_id == nullptr || clock == nullptr) {
      problem = "libnvidia-ml.so.1 lacks the functions that are needed";
      return;
    }
    char bus_id[32] = {};
    if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, 0) != cudaSuccess) {
      cudaGetLastError();
      problem = "the GPU's PCI address is not known";
      return;
    }
    int status = init();
    if (status == kNvmlSuccess) status = by_bus_id(bus_id, &device);
    if (status != kNvmlSuccess) {
      device = nullptr;
      problem = fmt::format("NVML does not answer (error {})", status);
    }
  }
};

/// Never closed: the sampling thread of another object may still use it.
const Nvml& nvml() {
  static const Nvml& instance = *new Nvml;
  return instance;
}

double median(const std::vector<double>& values) {
  return values.empty() ? 0 : quantile(values, 0.5);
}

double largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

double smallest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

}  // namespace

Card nvml_card() {
  const Nvml& api = nvml();
  Card card;
  if (!api.problem.empty()) return card;
  unsigned value = 0;
  unsigned pending = 0;
  int mode = 0;
  if (api.power_limit != nullptr && api.power_limit(api.device, &value) == kNvmlSuccess)
    card.power_limit_w = value / 1000.0;
  if (api.default_power_limit != nullptr && api.default_power_limit(api.device, &value) == kNvmlSuccess)
    card.default_power_limit_w = value / 1000.0;
  if (api.mig_mode != nullptr && api.mig_mode(api.device, &value, &pending) == kNvmlSuccess)
    card.is_divided = value != 0;
  if (api.virtualization_mode != nullptr && api.virtualization_mode(api.device, &mode) == kNvmlSuccess)
    card.is_shared = mode == kVirtualizationVgpu;
  return card;
}

struct NvmlSampler::Impl {
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  std::thread thread;
  std::vector<double> clocks_mhz;
  std::vector<double> powers_w;
  std::vector<double> temperatures_c;
  unsigned long long reasons = 0;

  void sample() {
    const Nvml& api = nvml();
    unsigned value = 0;
    if (api.clock(api.device, kClockSm, &value) == kNvmlSuccess) clocks_mhz.push_back(value);
    NvmlFieldValue field{};
    field.field = kFieldPowerInstant;
    if (api.fields != nullptr && api.fields(api.device, 1, &field) == kNvmlSuccess &&
        field.status == kNvmlSuccess) {
      powers_w.push_back(field.value.as_unsigned / 1000.0);
    } else if (api.power != nullptr && api.power(api.device, &value) == kNvmlSuccess) {
      powers_w.push_back(value / 1000.0);
    }
    if (api.temperature != nullptr && api.temperature(api.device, kTemperatureGpu, &value) == kNvmlSuccess)
      temperatures_c.push_back(value);
    unsigned long long mask = 0;
    if (api.reasons != nullptr && api.reasons(api.device, &mask) == kNvmlSuccess) reasons |= mask;
  }

  void run() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      lock.unlock();
      sample();  // only this thread touches the samples until it has been joined
      lock.lock();
      wake.wait_for(lock, kPeriod, [this] { return stopping; });
    }
  }

  void join() {
    if (!thread.joinable()) return;
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    wake.notify_one();
    thread.join();
  }
};

NvmlSampler::NvmlSampler() : impl_(std::make_unique<Impl>()) {}
NvmlSampler::~NvmlSampler() {
  impl_->join();
}

const std::string& NvmlSampler::problem() const {
  return nvml().problem;
}

void NvmlSampler::start() {
  impl_->join();
  impl_ = std::make_unique<Impl>();
  if (nvml().problem.empty()) impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

Conditions NvmlSampler::stop() {
  impl_->join();
  Conditions conditions;
  conditions.sm_clock_mhz_min = smallest(impl_->clocks_mhz);
  conditions.sm_clock_mhz_median = median(impl_->clocks_mhz);
  conditions.sm_clock_mhz_max = largest(impl_->clocks_mhz);
  conditions.power_w_median = median(impl_->powers_w);
  conditions.power_w_max = largest(impl_->powers_w);
  conditions.temperature_c_max = largest(impl_->temperatures_c);
  conditions.throttle_reasons = throttle_names(impl_->reasons);
  return conditions;
}

}  // namespace harness
