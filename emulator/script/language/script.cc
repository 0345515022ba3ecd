#include "emulator/script/language/script.h"

#include <algorithm>
#include <cstring>

namespace rocemu::script {

std::vector<std::byte> Value::make_bytes() const {
  if (kind == Kind::literal) return bytes;
  std::vector<std::byte> made(kind == Kind::word ? sizeof(uint64_t) : number);
  if (kind == Kind::word) {
    std::memcpy(made.data(), &number, sizeof number);
    return made;
  }
  for (size_t i = 0; i < made.size(); ++i)
    made[i] = static_cast<std::byte>(kind == Kind::filled ? last : last + i);
  return made;
}

const Value* Fields::find(const std::string& key) const {
  const auto found = std::ranges::find(list, key, &Field::key);
  return found == list.end() ? nullptr : &found->value;
}

uint64_t Fields::number(const std::string& key, uint64_t otherwise) const {
  const Value* value = find(key);
  return value == nullptr ? otherwise : value->kind == Value::Kind::none ? 1 : value->number;
}

std::string Fields::text(const std::string& key, const std::string& otherwise) const {
  const Value* value = find(key);
  return value == nullptr ? otherwise : value->text;
}

void Fields::add(const std::string& key, uint64_t number) {
  list.push_back(
      {key, {.kind = Value::Kind::number, .number = number, .text = {}, .bytes = {}}, {}});
}

void Fields::add_word(const std::string& key, const std::string& word) {
  list.push_back({key, {.kind = Value::Kind::name, .text = word, .bytes = {}}, {}});
}

void Fields::add_flag(const std::string& key) { list.push_back({key, {}, {}}); }

}  // namespace rocemu::script
