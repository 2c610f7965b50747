// Algorithms of Thrust over device and host memory: the host computes them, in its order.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <type_traits>
#include <vector>

#include "thrust/device_vector.h"

namespace thrust {

template <typename T = void>
struct maximum {
  T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <typename T = void>
struct minimum {
  T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
using std::greater;
using std::less;
using std::multiplies;
using std::plus;

namespace detail {
template <typename T>
std::vector<std::remove_const_t<T>> values_of(device_ptr<T> first, device_ptr<T> last) {
  std::vector<std::remove_const_t<T>> values(static_cast<std::size_t>(last - first));
  cudaMemcpy(values.data(), first.get(), values.size() * sizeof(T), cudaMemcpyDeviceToHost);
  return values;
}
template <typename Iterator>
auto values_of(Iterator first, Iterator last) {
  return std::vector<typename std::iterator_traits<Iterator>::value_type>(first, last);
}
template <typename T, typename To>
device_ptr<To> store(const std::vector<T>& values, device_ptr<To> to) {
  const std::vector<To> converted(values.begin(), values.end());
  cudaMemcpy(to.get(), converted.data(), converted.size() * sizeof(To), cudaMemcpyHostToDevice);
  return to + static_cast<std::ptrdiff_t>(values.size());
}
template <typename T, typename Iterator>
Iterator store(const std::vector<T>& values, Iterator to) {
  return std::copy(values.begin(), values.end(), to);
}
}  // namespace detail

template <typename From, typename To>
To copy(From first, From last, To to) {
  return detail::store(detail::values_of(first, last), to);
}
template <typename Iterator, typename T>
void fill(Iterator first, Iterator last, const T& value) {
  detail::store(std::vector<T>(static_cast<std::size_t>(last - first), value), first);
}
template <typename Iterator, typename T, typename Operation = std::plus<>>
T reduce(Iterator first, Iterator last, T initial, Operation operation = {}) {
  const auto values = detail::values_of(first, last);
  return std::accumulate(values.begin(), values.end(), initial, operation);
}
template <typename Iterator>
auto reduce(Iterator first, Iterator last) {
  return thrust::reduce(first, last, typename std::iterator_traits<Iterator>::value_type{});
}
template <typename From, typename To, typename Operation = std::plus<>>
To inclusive_scan(From first, From last, To to, Operation operation = {}) {
  auto values = detail::values_of(first, last);
  std::inclusive_scan(values.begin(), values.end(), values.begin(), operation);
  return detail::store(values, to);
}
template <typename From, typename To, typename T, typename Operation = std::plus<>>
To exclusive_scan(From first, From last, To to, T initial, Operation operation = {}) {
  auto values = detail::values_of(first, last);
  std::exclusive_scan(values.begin(), values.end(), values.begin(), initial, operation);
  return detail::store(values, to);
}
template <typename From, typename To>
To exclusive_scan(From first, From last, To to) {
  return thrust::exclusive_scan(first, last, to, typename std::iterator_traits<From>::value_type{});
}
template <typename Iterator, typename Less = std::less<>>
void sort(Iterator first, Iterator last, Less less = {}) {
  auto values = detail::values_of(first, last);
  std::sort(values.begin(), values.end(), less);
  detail::store(values, first);
}

}  // namespace thrust
