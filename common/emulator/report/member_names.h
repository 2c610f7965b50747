// Names of the members of the struct in dynamic shared memory, for reports: offset 0x18048 -> "full[1]".
//
// dynamic_shared<T>() hands T over; its members are found without any registration, by the compiler's own
// spelling of a pointer to each of them (the technique of Boost.PFR: count what T{{}, {}, ...} accepts, bind
// as many names, print the address as a template argument). A struct that adds nothing but methods to one
// base class has the members of that one. Of a struct with a base class and members of its own, those of the
// first base class have names; of the others mbarriers alone, from the source line that initialises them.
// Structs with more than 12 members stay nameless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace emulator {

struct Cta;
struct MemberTable;

struct Member {
  std::string_view name;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::vector<std::size_t> extents;  // of an array, outermost first
  std::size_t element_bytes = 0;
  const MemberTable* nested = nullptr;  // of the elements
};

struct MemberTable {
  std::vector<Member> members;
};

/// The member at `offset` of the CTA's dynamic shared memory: "stage[1].b[0][37]", or "" when it has no name.
/// Of a tile of small elements the last index is left out: with a swizzle it would mislead.
std::string member_name(const Cta& cta, std::uint32_t offset);
/// Whether that name stops at a struct, as the member there has none.
bool lacks_member_name(const Cta& cta, std::uint32_t offset);

namespace reflection {

template <typename T>
struct Example {
  T value;
};
// Never defined: only addresses inside it are formed, and only by the compiler.
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <typename T>
extern const Example<T> kExample;

/// Converts to every base class of T, and to nothing else.
template <typename T>
struct AnyBase {
  template <typename Base>
  requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>) operator Base() const;
};

/// Remembers the first base class of T, for who converts NamesBase<T> to it: first_base(BaseTag<T>{}).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-template-friend"
#endif
template <typename T>
struct BaseTag {
  friend auto first_base(BaseTag<T>);
};
template <typename T, typename Base>
struct BaseOf {
  friend auto first_base(BaseTag<T>) { return std::type_identity<Base>{}; }
};
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
template <typename T>
struct NamesBase {
  // The first condition comes first: nothing is remembered of what is no base class.
  template <typename Base,
            typename = std::enable_if_t<std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>>,
            std::size_t = sizeof(BaseOf<T, Base>)>
  operator Base() const;
};

/// Whether T is an aggregate with a base class; first_base is defined then.
template <typename T>
constexpr bool has_first_base() {
  if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
    return requires {
      T{NamesBase<T>{}};
    };
  } else {
    return false;
  }
}

inline constexpr int kMostMembers = 12;

// clang-format off
/// How many initialisers the aggregate T accepts; more than kMostMembers: too many to tell.
template <typename T>
constexpr int accepted_initialisers() {
  constexpr bool kAccepts[] = {  // 1, 2, 3 ... of them
      requires { T{{}}; },
      requires { T{{}, {}}; },
      requires { T{{}, {}, {}}; },
      requires { T{{}, {}, {}, {}}; },
      requires { T{{}, {}, {}, {}, {}}; },
      requires { T{{}, {}, {}, {}, {}, {}}; },
      requires { T{{}, {}, {}, {}, {}, {}, {}}; },
      requires { T{{}, {}, {}, {}, {}, {}, {}, {}}; },
      requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}}; },
      requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; },
      requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; },
      requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; },
      requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; },
  };
  int count = 0;
  for (int i = 0; i <= kMostMembers; ++i) {
    if (kAccepts[i]) count = i + 1;
  }
  return count;
}

/// How many initialisers the first element of the aggregate T accepts: the members of its base class.
template <typename T>
constexpr int initialisers_of_first() {
  constexpr bool kAccepts[] = {  // 1, 2, 3 ... of them
      requires { T{{{}}}; },
      requires { T{{{}, {}}}; },
      requires { T{{{}, {}, {}}}; },
      requires { T{{{}, {}, {}, {}}}; },
      requires { T{{{}, {}, {}, {}, {}}}; },
      requires { T{{{}, {}, {}, {}, {}, {}}}; },
      requires { T{{{}, {}, {}, {}, {}, {}, {}}}; },
      requires { T{{{}, {}, {}, {}, {}, {}, {}, {}}}; },
      requires { T{{{}, {}, {}, {}, {}, {}, {}, {}, {}}}; },
      requires { T{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}; },
      requires { T{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}; },
      requires { T{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}; },
      requires { T{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}; },
  };
  int count = 0;
  for (int i = 0; i <= kMostMembers; ++i) {
    if (kAccepts[i]) count = i + 1;
  }
  return count;
}
// clang-format on

/// The number of members, or 0 when T cannot be taken apart.
template <typename T>
constexpr int member_count() {
  constexpr bool kHasBase = requires {
    T{AnyBase<T>{}};
  };
  if constexpr (!std::is_class_v<T> || !std::is_aggregate_v<T>) {
    return 0;
  } else if constexpr (kHasBase) {
    // With nothing beside it, a structured binding takes the base class apart, unless that has one itself.
    constexpr bool kBaseHasBase = requires {
      T{{AnyBase<T>{}}};
    };
    constexpr bool kAlone = !std::is_empty_v<T> && !kBaseHasBase && accepted_initialisers<T>() == 1;
    constexpr int kCount = kAlone ? initialisers_of_first<T>() : 0;
    return kCount <= kMostMembers ? kCount : 0;
  } else {
    constexpr int kCount = accepted_initialisers<T>();
    return kCount <= kMostMembers ? kCount : 0;
  }
}

/// Pointers to the members.
template <typename T>
constexpr auto members_of(T& object) {
  constexpr int kCount = member_count<std::remove_const_t<T>>();
  if constexpr (kCount == 1) {
    auto& [a] = object;
    return std::tuple(&a);
  } else if constexpr (kCount == 2) {
    auto& [a, b] = object;
    return std::tuple(&a, &b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = object;
    return std::tuple(&a, &b, &c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = object;
    return std::tuple(&a, &b, &c, &d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = object;
    return std::tuple(&a, &b, &c, &d, &e);
  } else if constexpr (kCount == 6) {
    auto& [a, b, c, d, e, f] = object;
    return std::tuple(&a, &b, &c, &d, &e, &f);
  } else if constexpr (kCount == 7) {
    auto& [a, b, c, d, e, f, g] = object;
    return std::tuple(&a, &b, &c, &d, &e, &f, &g);
  } else if constexpr (kCount == 8) {
    auto& [a, b, c, d, e, f, g, h] = object;
    return std::tuple(&a, &b, &c, &d, &e, &f, &g, &h);
  } else if constexpr (kCount == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = object;
    return std::tuple(&a, &b, &c, &d, &e, &f, &g, &h, &i);
  } else if constexpr (kCount == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = object;
    return std::tuple(&a, &b, &c, &d, &e, &f, &g, &h, &i, &j);
  } else if constexpr (kCount == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = object;
    return std::tuple(&a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k);
  } else if constexpr (kCount == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = object;
    return std::tuple(&a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k, &l);
  } else {
    return std::tuple();
  }
}

/// A pointer as a template argument; clang 14 takes one to a member only inside a class.
template <typename T>
struct Argument {
  T pointer;
};
template <typename T>
Argument(T) -> Argument<T>;

template <auto kPointer>
constexpr std::string_view spelling() {
  return __PRETTY_FUNCTION__;
}

/// gcc: "... {(& kExample<S>.Example<S>::value.S::full)}; ...", clang: "... {&kExample.value.full}]".
constexpr std::string_view last_identifier(std::string_view text) {
#ifdef __clang__
  text = text.substr(0, text.rfind('}'));
#else
  text = text.substr(0, text.find(")}"));
#endif
  return text.substr(text.find_last_of(".:&") + 1);
}

template <typename T, std::size_t kIndex>
constexpr std::string_view member_spelling() {
  return last_identifier(spelling<Argument{std::get<kIndex>(members_of(kExample<T>.value))}>());
}

template <typename T>
const MemberTable* table_of(T& object);

template <typename T, std::size_t kIndex, typename Field>
Member describe(T& object, Field& field) {
  Member member;
  member.name = member_spelling<T, kIndex>();
  member.offset = static_cast<std::size_t>(reinterpret_cast<const char*>(&field) -
                                           reinterpret_cast<const char*>(&object));
  member.bytes = std::is_empty_v<Field> ? 0 : sizeof(Field);  // it may lie where another one does
  auto add_extents = [&]<typename Array>(auto& self, std::type_identity<Array>) -> void {
    if constexpr (std::is_array_v<Array>) {
      member.extents.push_back(std::extent_v<Array>);
      self(self, std::type_identity<std::remove_extent_t<Array>>{});
    }
  };
  add_extents(add_extents, std::type_identity<Field>{});
  using Element = std::remove_cv_t<std::remove_all_extents_t<Field>>;
  member.element_bytes = sizeof(Element);
  if constexpr (std::is_class_v<Element>) {
    member.nested = table_of(*reinterpret_cast<Element*>(&field));
  }
  return member;
}

template <typename T>
const MemberTable* table_of(T& object) {
  static const MemberTable kTable = [&object] {
    MemberTable made;
    if constexpr (member_count<T>() == 0 && has_first_base<T>()) {
      using Base = typename decltype(first_base(BaseTag<T>{}))::type;
      if constexpr (!std::is_empty_v<Base>) {
        Base& base = object;
        made = *table_of(base);
        for (Member& member : made.members)
          member.offset += static_cast<std::size_t>(reinterpret_cast<const char*>(&base) -
                                                    reinterpret_cast<const char*>(&object));
      }
    }
    constexpr auto kCount = static_cast<std::size_t>(member_count<T>());
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      const auto pointers = members_of(object);
      (made.members.push_back(describe<T, kIndex>(object, *std::get<kIndex>(pointers))), ...);
      static_cast<void>(pointers);
    }
    (std::make_index_sequence<kCount>{});
    return made;
  }();
  return &kTable;
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

}  // namespace reflection

/// Names the members in the reports about the running thread's CTA.
void name_dynamic_shared(const MemberTable* table);
template <typename T>
void name_dynamic_shared(T& shared) {
  if constexpr (reflection::member_count<T>() > 0 || reflection::has_first_base<T>())
    name_dynamic_shared(reflection::table_of(shared));
}

}  // namespace emulator
