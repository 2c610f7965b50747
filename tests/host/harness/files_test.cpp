#include "harness/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "catch.h"
#include "host/folder.h"

namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST_CASE("a file is written, and written anew, with nothing left beside it") {
  const Folder folder;
  for (const char* text : {"one\n", "two\n"}) {
    CHECK(harness::can_write_file(folder / "record.json"));
    CHECK_FALSE(harness::write_file(folder / "record.json", text));
    CHECK(content(folder / "record.json") == text);
  }
  CHECK(folder.files() == 1);
}

TEST_CASE("what cannot be written is said with the reason and leaves nothing behind") {
  const Folder folder;
  CHECK_FALSE(harness::can_write_file(""));
  CHECK_FALSE(harness::can_write_file(folder / "."));
  CHECK_FALSE(harness::can_write_file(folder / "none/record.json"));
  CHECK(harness::write_file(folder / "none/record.json", "x") == std::errc::no_such_file_or_directory);
  fs::create_directory(folder / "record.json");
  CHECK(harness::write_file(folder / "record.json", "x"));
  CHECK(folder.files() == 1);
}

TEST_CASE("a symbolic link stays one, and the file that it leads to is written") {
  const Folder folder;
  fs::create_directory(folder / "records");
  std::ofstream(folder / "records/first.json") << "before";
  fs::create_symlink("records/first.json", folder / "link.json");
  fs::create_symlink(folder / "link.json", folder / "second.json");  // of a link
  fs::create_symlink("records/new.json", folder / "dangling.json");
  for (const char* name : {"link.json", "second.json", "dangling.json"}) {
    CHECK(harness::can_write_file(folder / name));
    CHECK_FALSE(harness::write_file(folder / name, name));
    CHECK(fs::is_symlink(folder / name));
    CHECK(content(folder / name) == name);
  }
  CHECK(content(folder / "records/first.json") == "second.json");
  CHECK(content(folder / "records/new.json") == "dangling.json");
  CHECK(folder.files() == 4);
}

TEST_CASE("symbolic links that lead round in circles, or into a folder, are not written") {
  const Folder folder;
  fs::create_symlink("two", folder / "one");
  fs::create_symlink("one", folder / "two");
  fs::create_symlink(".", folder / "folder");
  for (const char* name : {"one", "folder"}) {
    CHECK_FALSE(harness::can_write_file(folder / name));
    CHECK(harness::write_file(folder / name, "x"));
    CHECK(fs::is_symlink(folder / name));
  }
  CHECK(folder.files() == 3);
}

// As root, a rename would put an ordinary file in the place of /dev/null.
TEST_CASE("a pipe is written to and stays a pipe") {
  const Folder folder;
  const fs::path path = folder / "pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  CHECK(harness::can_write_file(path));
  CHECK_FALSE(harness::write_file(path, "text"));
  CHECK(fs::is_fifo(path));
  std::string text(10, ' ');
  const ssize_t length = read(reader, text.data(), text.size());
  close(reader);
  CHECK(text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(length, 0))) == "text");
  CHECK(folder.files() == 1);
}

TEST_CASE("a file that is open, /dev/fd/3, is written on and neither replaced nor begun anew") {
  const Folder folder;
  const int descriptor = open((folder / "out").c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(descriptor >= 0);
  const std::string number = std::to_string(descriptor);
  fs::create_symlink("/dev/fd/" + number, folder / "link");
  const auto print = [&](const std::string& text) {
    REQUIRE(::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  };
  print("before ");
  for (const fs::path& path :
       {fs::path("/dev/fd/" + number), fs::path("/proc/self/fd/" + number),
        fs::path("/proc/" + std::to_string(getpid()) + "/fd/" + number), folder / "link"}) {
    INFO(path);
    CHECK(harness::can_write_file(path));
    CHECK_FALSE(harness::write_file(path, "text "));
  }
  print("after");
  close(descriptor);
  CHECK(content(folder / "out") == "before text text text text after");
  CHECK(folder.files() == 2);
}

TEST_CASE("a descriptor that is closed, or open for reading, cannot be written") {
  const Folder folder;
  std::ofstream(folder / "in") << "as it was";
  const int descriptor = open((folder / "in").c_str(), O_RDONLY);
  REQUIRE(descriptor >= 0);
  const std::string path = "/dev/fd/" + std::to_string(descriptor);
  CHECK_FALSE(harness::can_write_file(path));
  CHECK(harness::write_file(path, "x") == std::errc::bad_file_descriptor);
  close(descriptor);
  CHECK_FALSE(harness::can_write_file(path));
  CHECK(harness::write_file(path, "x"));
  CHECK(content(folder / "in") == "as it was");
  CHECK(folder.files() == 1);
}

}  // namespace
