#include "codecs/delta/tensor_map.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/weights.hpp"

using namespace ddf;
using namespace ddf::delta;
using namespace ddf::test;

BOOST_AUTO_TEST_SUITE(delta_tensor_map)

static result<std::vector<tensor>> parsed(std::string_view header, std::uint64_t data_bytes) {
  const auto head = with_length(header);
  return parse_safetensors(head, head.size() + data_bytes);
}

static std::string refusal(std::string_view header, std::uint64_t data_bytes) {
  const auto t = parsed(header, data_bytes);
  if (t) return "accepted";
  BOOST_TEST((t.error().code == errc::invalid_argument));
  return t.error().what;
}

static bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

BOOST_AUTO_TEST_CASE(tensors_come_in_file_order_after_the_header) {
  const std::string header = R"( {"b":{"dtype":"F32","shape":[3],"data_offsets":[4,16]},"a":{"shape":[2,1],"data_offsets":[0,4],"dtype":"BF16"}} )";
  BOOST_TEST(contains(refusal(header, 16), "begin with '{'"));   // the reference reader's rule
  const auto t = parsed(header.substr(1), 16);
  BOOST_REQUIRE(t.has_value());
  BOOST_REQUIRE(t->size() == 3u);
  const std::uint64_t data = 8 + header.size() - 1;
  BOOST_TEST(t->at(0).name == "__header__");
  BOOST_TEST(t->at(0).bytes == data);
  BOOST_TEST(t->at(1).name == "a");
  BOOST_TEST(t->at(1).offset == data);
  BOOST_TEST((t->at(1).element == element::bf16));
  BOOST_TEST((t->at(1).shape == std::vector<std::uint64_t>{2, 1}));
  BOOST_TEST(t->at(2).name == "b");
  BOOST_TEST(t->at(2).offset == data + 4);
  BOOST_TEST(t->at(2).bytes == 12u);
  BOOST_TEST((t->at(2).element == element::f32));
}

BOOST_AUTO_TEST_CASE(every_type_has_its_element) {
  const std::vector<std::tuple<const char*, element, unsigned>> all = {
      {"F64", element::f64, 8}, {"F32", element::f32, 4}, {"F16", element::f16, 2}, {"BF16", element::bf16, 2}, {"F8_E4M3", element::f8_e4m3, 1},
      {"F8_E5M2", element::f8_e5m2, 1}, {"I64", element::i64, 8}, {"I32", element::i32, 4}, {"I16", element::i16, 2}, {"I8", element::i8, 1},
      {"U64", element::i64, 8}, {"U32", element::i32, 4}, {"U16", element::i16, 2}, {"U8", element::i8, 1}, {"BOOL", element::i8, 1},
      {"F4", element::bytes, 5}, {"later", element::bytes, 77}};
  for (const auto& [name, is, bytes] : all) {
    const auto t = parsed(std::string(R"({"w":{"dtype":")") + name + R"(","shape":[1],"data_offsets":[0,)" + std::to_string(bytes) + "]}}", bytes);
    BOOST_REQUIRE_MESSAGE(t.has_value(), name);
    BOOST_TEST((t->at(1).element == is), name);
  }
}

BOOST_AUTO_TEST_CASE(no_tensors_zero_sizes_and_rank_0_are_legal) {
  BOOST_TEST(parsed("{}", 0).has_value());
  BOOST_TEST(parsed(R"({"__metadata__":{"a":"b","c":""}})", 0).has_value());
  const auto t = parsed(R"({"scalar":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"last":{"dtype":"F32","shape":[4,0],"data_offsets":[6,6]},)"
                        R"("x":{"dtype":"I16","shape":[1],"data_offsets":[4,6]},"none":{"dtype":"F64","shape":[0,18446744073709551615,9],"data_offsets":[4,4]}})", 6);
  BOOST_REQUIRE(t.has_value());
  std::string order;
  for (const auto& x : *t) order += x.name + " ";
  BOOST_TEST(order == "__header__ scalar none x last ");
}

BOOST_AUTO_TEST_CASE(names_may_hold_escapes_and_unknown_members_are_skipped) {
  const auto t = parsed(R"({"a\"\\\u00e9\ud83d\ude00\n":{"dtype":"U8","quant":{"x":[1,-2.5e-3,true,null,{"y":{}},[]],"z":"}"},"shape":[1],"data_offsets":[0,1]}})", 1);
  BOOST_REQUIRE(t.has_value());
  BOOST_TEST(t->at(1).name == "a\"\\\xc3\xa9\xf0\x9f\x98\x80\n");
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_said_by_name) {
  const auto one = [](std::string_view members) { return "{\"layers.7.w\":{" + std::string(members) + "}}"; };
  const auto said = [&](std::string_view header, std::uint64_t bytes, std::string_view what, std::string_view named = "'layers.7.w'") {
    const std::string text = refusal(header, bytes);
    BOOST_TEST(contains(text, what), header << ": " << text);
    BOOST_TEST(contains(text, named), header << ": " << text);
  };
  said(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), 4, "has 4 bytes, which its shape and F32 do not make");
  said(one(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"), 0, "do not make");
  said(one(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])"), 0, "do not make");
  said(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), 7, "ends beyond the file");
  said(one(R"("dtype":"later","shape":[2],"data_offsets":[0,18446744073709551615])"), 7, "ends beyond the file");
  said(one(R"("dtype":"F32","shape":[0],"data_offsets":[8,8])"), 8, "leaves a hole before it");
  said(one(R"("dtype":"F32","shape":[0],"data_offsets":[8,0])"), 8, "ends before it begins");
  said(one(R"("shape":[2],"data_offsets":[0,8])"), 8, "has no dtype");
  said(one(R"("dtype":"F32","data_offsets":[0,8])"), 8, "has no shape");
  said(one(R"("dtype":"F32","shape":[2])"), 8, "has no data_offsets");
  said(one(R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])"), 8, "has 'dtype' twice");
  said(one(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), 8, "shape that is no list");
  said(one(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), 8, "shape that is no list");
  said(one(R"("dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8])"), 8, "shape that is no list");
  said(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,9])"), 8, "data_offsets that are no two");
  said(one(R"("dtype":7,"shape":[2],"data_offsets":[0,8])"), 8, "dtype that is no string");
  said(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"layers.7.w":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3, "overlaps the one before it");
  said(R"({"layers.7.w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"layers.7.w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2, "comes twice");
  said(R"({"__header__":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1, "reserved name", "'__header__'");
  said(R"({"__metadata__":{},"__metadata__":{}})", 0, "comes twice", "'__metadata__'");
  BOOST_TEST(contains(refusal(one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1])"), 3), "end 2 bytes before the file"));
}

BOOST_AUTO_TEST_CASE(what_is_no_header_is_refused) {
  for (const std::string_view h : {"", "{", "}", "[]", "null", "{]", "{\"a\"}", "{\"a\":1}", "{\"a\":{}}", "{,}", "{} x", "{\"a\":{\"dtype\":\"U8\",}}", "{\"\\ud800\":{}}", "{\"\\x\":{}}", "{\"a",
                                   "{\"a\\", "{\"__metadata__\":[]}", "{\"__metadata__\":{\"a\":01}}", "{\"__metadata__\":{\"a\":[1,]}}", "{\"\xff\":{}}", "{\"a\nb\":{}}"})
    BOOST_TEST(refusal(h, 0) != "accepted", h);
  std::string deep = "{\"__metadata__\":{\"a\":";
  for (int i = 0; i < 100'000; ++i) deep += "[";
  BOOST_TEST(refusal(deep, 0) != "accepted");
}

BOOST_AUTO_TEST_CASE(lengths_are_checked_before_memory_is_taken) {
  auto head = with_length("{}");
  BOOST_TEST(!parse_safetensors(std::span(head).first(7), 7).has_value());
  BOOST_TEST(!parse_safetensors(std::span(head).first(9), 10).has_value());
  for (std::size_t i = 0; i < 8; ++i) head[i] = std::byte(0xff);
  BOOST_TEST(contains(parse_safetensors(head, ~std::uint64_t(0)).error().what, "at most 100,000,000"));
  head[7] = head[6] = head[5] = head[4] = head[3] = std::byte(0);
  BOOST_TEST(contains(parse_safetensors(head, 1000).error().what, "more than the file"));
  unsigned reads = 0;
  manifest m{.name = "x", .parts = {{"", 1ull << 40}}};
  const auto t = tensor_map_of(m, [&](std::uint64_t, std::span<std::byte> out) -> result<void> {
    ++reads;
    for (auto& b : out) b = std::byte(3);
    return {};
  });
  BOOST_TEST(reads == 1u);
  BOOST_REQUIRE(t->size() == 1u);
  BOOST_TEST(t->at(0).name == "");
  BOOST_TEST(t->at(0).bytes == 1ull << 40);
}

BOOST_AUTO_TEST_CASE(a_folder_s_tensors_are_unique_by_name) {
  const auto a = safetensors({bf16_tensor("both", 1, 4), bf16_tensor("only_a", 2, 4)}), b = safetensors({bf16_tensor("both", 3, 4), bf16_tensor("only_b", 4, 4)});
  auto o = folder_object({{"config.json", as_bytes("{}")}, {"m/a.safetensors", a}, {"m/b.safetensors", b}, {"empty", {}}});
  o.is.parts.push_back({.name = "no_files", .directory = true});
  std::vector<std::string> warnings;
  const auto map = o.map(&warnings);
  BOOST_TEST(warnings.empty());
  std::string names;
  std::uint64_t end = 0;
  for (const auto& t : map) {
    names += t.name + " ";
    BOOST_TEST(t.offset == end);
    end += t.bytes;
  }
  BOOST_TEST(end == o.bytes.size());
  BOOST_TEST(names == "config.json m/a.safetensors:__header__ m/a.safetensors:both only_a m/b.safetensors:__header__ m/b.safetensors:both only_b empty ");
}

BOOST_AUTO_TEST_CASE(a_broken_file_counts_as_untyped_and_is_named) {
  auto whole = safetensors({bf16_tensor("w", 1, 64)});
  whole.pop_back();
  std::vector<std::string> warnings;
  const auto map = folder_object({{"a.safetensors", whole}}).map(&warnings);
  BOOST_REQUIRE(map.size() == 1u);
  BOOST_TEST(map[0].name == "a.safetensors");
  BOOST_TEST((map[0].element == element::bytes));
  BOOST_REQUIRE(warnings.size() == 1u);
  BOOST_TEST(warnings[0] == "a.safetensors is sent as untyped bytes: safetensors header: tensor 'w' ends beyond the file");
  warnings.clear();
  file_object(noise(1, 1000), "noise").map(&warnings);   // claims nothing
  BOOST_TEST(warnings.empty());
  auto memory = file_object(noise(1, 1000), "kv");
  memory.is.element_bytes = 2;
  BOOST_TEST((memory.map()[0].element == element::i16));
}

BOOST_AUTO_TEST_CASE(errors_of_reading_come_through) {
  const manifest m{.name = "x.safetensors", .parts = {{"", 1000}}};
  const auto t = tensor_map_of(m, [](std::uint64_t, std::span<std::byte>) -> result<void> { return fail(errc::io, "no", 5); });
  BOOST_REQUIRE(!t.has_value());
  BOOST_TEST((t.error().code == errc::io));
}

BOOST_AUTO_TEST_SUITE_END()
