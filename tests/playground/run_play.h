// Running a program of tools/playground/ the way its main() does.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "play.h"

namespace play_test {

struct Ran {
  int status;
  std::string text;
  std::string errors;
};

/// `words`: the arguments, separated by blanks.
inline Ran run(play::Program program, const std::string& words) {
  std::istringstream stream(words);
  std::vector<std::string> arguments;
  for (std::string word; stream >> word;) arguments.push_back(word);
  play::Output output;
  const int status = program(arguments, output);
  return {status, output.text, output.errors};
}

/// Bad input: status 2, nothing but one sentence, and that sentence says these things.
inline void check_refused(play::Program program, const std::string& words,
                          const std::vector<std::string>& parts) {
  const Ran ran = run(program, words);
  INFO(words << "\n" << ran.text << ran.errors);
  CHECK(ran.status == 2);
  CHECK(ran.text.empty());
  CHECK(ran.errors.rfind("error: ", 0) == 0);
  CHECK(ran.errors.find('\n') == ran.errors.size() - 1);
  for (const std::string& part : parts) {
    INFO(part);
    CHECK(contains(ran.errors, part));
  }
}

}  // namespace play_test
