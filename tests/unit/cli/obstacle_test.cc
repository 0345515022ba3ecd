#include "emulator/cli/process/obstacle.h"

#include <elf.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>

#include "tests/unit/cli/temporary_folder.h"

namespace rocemu::cli {
namespace {

using Catch::Contains;

// As far as a loader is concerned, a program for this machine.
std::string program_with_loader(const std::string& loader) {
  Elf64_Ehdr header = {};
  std::ifstream("/proc/self/exe", std::ios::binary)
      .read(reinterpret_cast<char*>(&header), sizeof(header));
  header.e_phoff = sizeof(header);
  header.e_phnum = loader.empty() ? 0 : 1;
  Elf64_Phdr segment = {};
  segment.p_type = PT_INTERP;
  segment.p_offset = sizeof(header) + sizeof(segment);
  segment.p_filesz = loader.size() + 1;
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) +
         std::string(reinterpret_cast<const char*>(&segment), sizeof(segment)) + loader + '\0';
}

std::string obstacle(const std::string& program) { return find_obstacle(program).text; }

class Programs {
 public:
  std::string make(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = folder_.make_file(name);
    std::ofstream(path, std::ios::binary) << content;
    ::chmod(path.c_str(), 0755);
    return path;
  }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("a dynamically linked program is reached", "[cli]") {
  const Programs programs;
  CHECK(obstacle("/proc/self/exe").empty());
  CHECK(obstacle("true").empty());
  CHECK(obstacle(programs.make("a", program_with_loader("/lib64/ld-linux.so.2"))).empty());
}

TEST_CASE("a static program is not reached, nor one of musl's or of another machine", "[cli]") {
  const Programs programs;
  const std::string plain = programs.make("static", program_with_loader(""));
  CHECK_THAT(obstacle(plain), Contains(plain) && Contains("statically linked"));
  CHECK_FALSE(find_obstacle(plain).refuses_preload);
  const std::string musl = programs.make("m", program_with_loader("/lib/ld-musl-x86_64.so.1"));
  CHECK_THAT(obstacle(musl), Contains("musl"));
  CHECK(find_obstacle(musl).refuses_preload);
  std::string other = program_with_loader("/lib/ld-linux.so.2");
  other[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_RISCV);
  CHECK_THAT(obstacle(programs.make("other", other)), Contains("architecture"));
}

TEST_CASE("the loader is as good as the program that it is given", "[cli]") {
  const Programs programs;
  CHECK(obstacle(programs.make("ld-linux-x86-64.so.2", program_with_loader(""))).empty());
}

TEST_CASE("of a script the interpreter counts", "[cli]") {
  const Programs programs;
  const std::string interpreter = programs.make("static", program_with_loader(""));
  const std::string script = programs.make("script", "#! " + interpreter + " -x\n");
  CHECK_THAT(obstacle(script), Contains(interpreter));
  CHECK_THAT(obstacle(programs.make("outer", "#!" + script + "\n")), Contains(interpreter));
  CHECK(obstacle(programs.make("shell", "#!/bin/sh\n")).empty());
}

TEST_CASE("of what is no program nothing is said", "[cli]") {
  const Programs programs;
  const std::string loop = programs.make("loop", "");
  programs.make("loop", "#!" + loop);
  for (const std::string& name :
       {loop, programs.make("text", "text"), programs.make("cut", "\177ELF\2"),
        std::string("/nowhere"), std::string("no-such-program"), std::string("/")})
    CHECK(obstacle(name).empty());
  std::string broken = program_with_loader("/lib/ld-musl-x86_64.so.1");
  broken.resize(sizeof(Elf64_Ehdr) + 8);
  CHECK(obstacle(programs.make("broken", broken)).empty());
}

}  // namespace
}  // namespace rocemu::cli
