#include "verbs_shim/exchange/region_mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "tests/unit/verbs_shim/region_memory.h"
#include "verbs_shim/exchange/procmap_query.h"

using namespace rocemu::exchange;

namespace {

struct Part {
  uintptr_t from;
  uintptr_t to;
  int protection;
  bool operator==(const Part&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Part& part) {
  return out << std::hex << part.from << '-' << part.to << " protection " << part.protection;
}

constexpr int kOpen = PROT_READ | PROT_WRITE;

struct Walked {
  std::vector<Part> parts;
  size_t most = SIZE_MAX;  // after as many the walk ends
  RegionWalk walk;

  Walked(uintptr_t from, uintptr_t to) : walk{from, to, note, this} {}
  static bool note(void* context, const RegionPart& part) {
    auto& self = *static_cast<Walked*>(context);
    self.parts.push_back({part.from, part.to, part.protection});
    return self.parts.size() < self.most;
  }
};

using Way = int (*)(int, RegionWalk&);

int walk_by(Way way, RegionWalk& walk) {
  const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  REQUIRE(maps >= 0);
  const int error = way(maps, walk);
  close(maps);
  return error;
}

// The ways that this kernel has.
std::vector<Way> ways() {
  Walked nothing(1, 2);
  if (is_unknown_call(walk_by(query_regions, nothing.walk))) {
    WARN("this kernel has no PROCMAP_QUERY: the text alone is tested");
    return {read_regions};
  }
  return {query_regions, read_regions};
}

int text_file(const std::string& text) {
  const int fd = memfd_create("text", MFD_CLOEXEC);
  REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
  return fd;
}

}  // namespace

TEST_CASE("regions are found among other mappings, both ways alike") {
  RegionMemory memory(16);
  memory.share(2, 3);
  memory.share(5, 2);  // one behind another
  memory.share(8, 1, "rocemu-region-not");
  memory.share(9, 1, "rocemu");
  memory.share(10, 1, "rocemu-region", MAP_PRIVATE);
  memory.share(12, 3);
  REQUIRE(mprotect(memory.at(13), RegionMemory::bytes(1), PROT_NONE) == 0);
  for (const Way way : ways()) {
    Walked all(memory.address(0), memory.address(16));
    CHECK(walk_by(way, all.walk) == 0);
    CHECK(all.walk.at == memory.address(16));
    CHECK(all.parts == std::vector<Part>{
                           {memory.address(2), memory.address(5), kOpen},
                           {memory.address(5), memory.address(7), kOpen},
                           {memory.address(12), memory.address(13), kOpen},
                           {memory.address(13), memory.address(14), PROT_NONE},
                           {memory.address(14), memory.address(15), kOpen},
                       });
  }
}

TEST_CASE("of a region that is larger than the range its part is named") {
  RegionMemory memory(6);
  memory.share(0, 6);
  for (const Way way : ways()) {
    Walked inner(memory.address(2), memory.address(4));
    CHECK(walk_by(way, inner.walk) == 0);
    CHECK(inner.parts == std::vector<Part>{{memory.address(2), memory.address(4), kOpen}});
    Walked none(memory.address(2), memory.address(2));
    CHECK(walk_by(way, none.walk) == 0);
    CHECK(none.parts.empty());
  }
}

TEST_CASE("holes, the end of the address space, and a walk that ends early") {
  RegionMemory memory(6);
  memory.share(1, 1);
  memory.share(4, 1);
  REQUIRE(munmap(memory.at(2), RegionMemory::bytes(2)) == 0);
  for (const Way way : ways()) {
    Walked all(memory.address(0), UINTPTR_MAX);
    CHECK(walk_by(way, all.walk) == 0);
    CHECK(all.parts == std::vector<Part>{{memory.address(1), memory.address(2), kOpen},
                                         {memory.address(4), memory.address(5), kOpen}});
    Walked first(memory.address(0), memory.address(6));
    first.most = 1;
    CHECK(walk_by(way, first.walk) == 0);
    CHECK(first.parts.size() == 1);
  }
}

TEST_CASE("a mapping whose file has a long name is passed over") {
  RegionMemory memory(3);
  memory.share(0, 1, std::string(NAME_MAX - 6, 'x').c_str());
  memory.share(1, 1);
  for (const Way way : ways()) {
    Walked all(memory.address(0), memory.address(3));
    CHECK(walk_by(way, all.walk) == 0);
    CHECK(all.parts == std::vector<Part>{{memory.address(1), memory.address(2), kOpen}});
  }
}

TEST_CASE("whatever way the kernel has, it is found") {
  RegionMemory memory(3);
  memory.share(1, 1);
  Walked all(memory.address(0), memory.address(3));
  CHECK(visit_regions(all.walk) == 0);
  CHECK(all.parts == std::vector<Part>{{memory.address(1), memory.address(2), kOpen}});
}

TEST_CASE("the text is understood across the ends of what a read gives") {
  const std::string region =
      " rw-s 00000000 00:01 1234                /memfd:rocemu-region (deleted)";
  for (size_t shift = 0; shift < 1100; ++shift) {
    const int fd =
        text_file("1000-2000 r-xp 00000000 fe:00 12   /" + std::string(shift, 'y') + "\n" +
                  "2000-3000 rw-p 00000000 00:00 0\n"
                  "3000-5000" +
                  region + "\n" + "5000-6000" + region + " (deleted)\n" +
                  "6000-7000 r--s 00000000 00:01 7 /x /memfd:rocemu-region (deleted)\n"
                  "not a line of maps\n\n-\n7000\n7000-8000\n7000-8000 rw-s\n"
                  "8000-ffffffffff601000 ---s" +
                  region.substr(5) + "\n");
    Walked all(0x4000, 0xffffffffff600000);
    CHECK(read_regions(fd, all.walk) == 0);
    close(fd);
    CHECK(all.parts ==
          std::vector<Part>{{0x4000, 0x5000, kOpen}, {0x8000, 0xffffffffff600000, PROT_NONE}});
  }
}

TEST_CASE("mappings that cannot be read are an error") {
  Walked all(0x1000, 0x2000);
  CHECK(query_regions(-1, all.walk) == EBADF);
  CHECK(read_regions(-1, all.walk) == EBADF);
  CHECK(all.parts.empty());
}
