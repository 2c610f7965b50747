// What was worked out once is not worked out again.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace gemm {

/// Values by key, for any number of threads.
template <typename Key, typename Value>
class Remembered {
 public:
  /// The value of this key; make() is called where it is not known, perhaps by two threads at once.
  template <typename Make>
  Value find_or(const Key& key, const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = values_.find(key); known != values_.end()) return known->second;
    }
    const Value value = make();
    const std::lock_guard lock(mutex_);
    if (values_.size() >= kMost) values_.clear();  // of a program whose keys never repeat
    return values_.emplace(key, value).first->second;
  }

 private:
  static constexpr std::size_t kMost = 4096;
  std::mutex mutex_;
  std::map<Key, Value> values_;
};

}  // namespace gemm
