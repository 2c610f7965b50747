// What the author of a kernel's file writes beside the kernel for tools/emulate: the same on the emulator and
// on a GPU.
//
//   #include <emulate.h>
//   void check_kernel(emulate::Run& run) {
//     float* x = run.buffer("x", run.small_integers<float>(1000));
//     float* y = run.buffer<float>("y", 1000);             // holds nothing yet
//     scale<<<4, 256>>>(x, y, 1000);
//     run.expect_equal("y", run.host(y), reference);
//   }
//
// It is called once for each schedule. Buffers are freed when it returns.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace emulate {

/// A wrong result: one sentence.
class Mismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

/// The next cudaMalloc is called so in reports; a GPU does not care.
void name_next_allocation(const std::string& name);

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + " failed: " + cudaGetErrorString(error));
}

/// A bf16 as its 16 bits and nothing else, as this project's kernels have it. Its name is not said here: the
/// file may call a kernel like our namespace.
template <typename T>
inline constexpr bool kIsBf16Pattern = [] {
  if constexpr (std::is_aggregate_v<T> && sizeof(T) == 2) {
    return requires(T value) { value.bits = std::uint16_t{}; };
  } else {
    return false;
  }
}();

template <typename T>
double number(const T& value) {
  if constexpr (kIsBf16Pattern<T>) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16));
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}
inline double number(double value) {
  return value;
}
inline double number(int value) {
  return value;
}
inline double number(unsigned value) {
  return value;
}

template <typename T>
T from_number(double value) {
  if constexpr (kIsBf16Pattern<T>) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
    return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};  // ties to even
  } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>) {
    return static_cast<T>(value);
  } else {
    return T(static_cast<float>(value));
  }
}

template <typename T>
std::vector<double> numbers(const std::vector<T>& values) {
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) result[i] = number(values[i]);
  return result;
}

/// a[m][k] * b[n][k]^T: not in the file's own object, where each load costs a look.
std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, int m, int n, int k);

}  // namespace detail

/// One run of check_kernel.
class Run {
 public:
  Run(std::uint64_t seed, bool on_emulator)
      : state_(seed * 0x9e3779b97f4a7c15u + 1), on_emulator_(on_emulator) {}
  ~Run() {
    for (const auto& [memory, bytes] : buffers_) cudaFree(const_cast<void*>(memory));
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool on_emulator() const { return on_emulator_; }

  /// Device memory that holds nothing: the emulator reports a read of what no kernel and no copy has written.
  /// On a GPU it is filled with NaNs.
  template <typename T>
  T* buffer(const std::string& name, std::size_t count) {
    T* memory = nullptr;
    detail::name_next_allocation(name);
    detail::check(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
    buffers_[memory] = count * sizeof(T);
    if (!on_emulator_) detail::check(cudaMemset(memory, 0xff, count * sizeof(T)), "cudaMemset");
    return memory;
  }
  /// Device memory that holds these values.
  template <typename T>
  T* buffer(const std::string& name, const std::vector<T>& values) {
    T* memory = buffer<T>(name, values.size());
    detail::check(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
                  "cudaMemcpy");
    return memory;
  }
  /// A whole buffer of this run, after the kernels before have ended.
  template <typename T>
  std::vector<T> host(const T* memory) {
    const auto found = buffers_.find(memory);
    if (found == buffers_.end())
      throw std::runtime_error("Run::host wants a pointer that Run::buffer returned");
    detail::check(cudaDeviceSynchronize(), "the kernel");
    std::vector<T> values(found->second / sizeof(T));
    detail::check(cudaMemcpy(values.data(), memory, found->second, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
  }

  /// Inputs that depend on --seed: whole numbers from -2 to 2, of which sums of products are exact in
  /// binary32.
  template <typename T>
  std::vector<T> small_integers(std::size_t count) {
    std::vector<T> values(count);
    for (T& value : values) value = detail::from_number<T>(static_cast<double>(next() % 5) - 2);
    return values;
  }
  /// Numbers from [-1, 1).
  template <typename T>
  std::vector<T> uniform(std::size_t count) {
    std::vector<T> values(count);
    for (T& value : values)
      value = detail::from_number<T>(static_cast<double>(next() % (1u << 20)) / (1u << 19) - 1);
    return values;
  }

  /// Every element is the one expected; a NaN is none.
  template <typename T, typename U>
  void expect_equal(const std::string& name, const std::vector<T>& got, const std::vector<U>& expected) {
    compare(name, got, expected, 0, 0);
  }
  /// |got - expected| <= absolute + relative * |expected|; a NaN never is.
  template <typename T, typename U>
  void expect_close(const std::string& name, const std::vector<T>& got, const std::vector<U>& expected,
                    double relative, double absolute = 0) {
    compare(name, got, expected, relative, absolute);
  }
  /// D = A · Bᵀ, A is [m][k], B [n][k], D [m][n], all buffers of this run. With small_integers() every bit
  /// counts; `relative` is for other inputs.
  template <typename TD, typename TA, typename TB>
  void expect_gemm(const std::string& name, const TD* d, const TA* a, const TB* b, int m, int n, int k,
                   double relative = 0) {
    std::vector<double> expected =
        detail::product(detail::numbers(host(a)), detail::numbers(host(b)), m, n, k);
    for (double& value : expected) value = detail::number(detail::from_number<TD>(value));
    compare(name, host(d), expected, relative, relative * std::sqrt(static_cast<double>(k)), n);
  }
  /// What the kernels of this run do in all, such as ("k-tiles", ctas * k / 64): tools/emulate tells how many
  /// of them the emulator does in a second of CPU. Nothing depends on it.
  void work(const std::string& unit, std::size_t count) { work_[unit] += count; }
  const std::map<std::string, std::size_t>& work() const { return work_; }

  /// Anything else that has to hold.
  void expect(bool holds, const std::string& sentence) {
    ++expectations_;
    if (!holds) throw Mismatch(sentence);
  }
  /// How often the results were compared with what they should be.
  std::size_t expectations() const { return expectations_; }

 private:
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ >> 20;
  }

  template <typename T, typename U>
  void compare(const std::string& name, const std::vector<T>& got, const std::vector<U>& expected,
               double relative, double absolute, int columns = 0) {
    ++expectations_;
    if (got.size() != expected.size()) {
      throw Mismatch(name + " has " + std::to_string(got.size()) + " elements, and " +
                     std::to_string(expected.size()) + " are expected");
    }
    std::size_t wrong = 0;
    std::string first;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double g = detail::number(got[i]);
      const double e = detail::number(expected[i]);
      if (g == e || std::abs(g - e) <= absolute + relative * std::abs(e)) continue;
      if (wrong++ > 0) continue;
      char text[200];
      if (columns > 0) {
        std::snprintf(text, sizeof text, "%s[%zu][%zu] is %.9g, expected %.9g", name.c_str(),
                      i / static_cast<std::size_t>(columns), i % static_cast<std::size_t>(columns), g, e);
      } else {
        std::snprintf(text, sizeof text, "%s[%zu] is %.9g, expected %.9g", name.c_str(), i, g, e);
      }
      first = text;
    }
    if (wrong > 0)
      throw Mismatch(first + "; " + std::to_string(wrong) + " of " + std::to_string(got.size()) +
                     " elements are wrong");
  }

  std::uint64_t state_;
  bool on_emulator_;
  std::size_t expectations_ = 0;
  std::map<const void*, std::size_t> buffers_;
  std::map<std::string, std::size_t> work_;
};

namespace detail {

/// The file's check_kernel or main; tools/emulate writes it behind the file.
void run_once(Run& run);

inline void call_main(int (*function)(), Run& run) {
  run.expect(function() == 0, "main did not return 0");
}
/// What follows -- on the command line: the arguments of the file's main.
inline std::vector<std::string> arguments_of_main;

inline void call_main(int (*function)(int, char**), Run& run) {
  std::vector<std::string> values{"emulate"};
  values.insert(values.end(), arguments_of_main.begin(), arguments_of_main.end());
  std::vector<char*> arguments;
  for (std::string& value : values) arguments.push_back(value.data());
  arguments.push_back(nullptr);
  run.expect(function(static_cast<int>(values.size()), arguments.data()) == 0, "main did not return 0");
}
inline void call_main(int (*function)(int, const char**), Run& run) {
  call_main(reinterpret_cast<int (*)(int, char**)>(function), run);
}

}  // namespace detail
}  // namespace emulate
