package anchor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const source = `
#include <vector>
namespace ns { enum class colour : int { RED, GREEN }; }
enum plain { A, B, };
typedef enum { C } anon_enum;
typedef struct { int x; } anon_struct;
struct forward;
struct GGML_ALIGN(16) aligned { int a1; };
struct __attribute__((packed)) packed final : public std::vector<int>, forward { int p1; };
class outer {
public:
    outer(int n) : n(n), v{1, 2} { body_outer(); }
    ~outer() { body_dtor(); }
    int get() const override { return get_inline; }
    bool operator==(const outer & o) const { return eq; }
    int operator()(int i) { return call; }
    operator bool() const { return conv; }
    struct inner { int i1; };
    int declared(int) const;
    int pure() const = 0;
};
template <typename T, class U> struct holder { T t1; };
template <> struct holder<int, long> { int spec1; };
outer::outer(const char * s, int n)
    : base<int>(s), n{n}, f([](int x) { return x; })
{ ctor_body(); }
int outer::get() const { return get_outer; }
outer::~outer() { out_dtor(); }
template <int D> static __global__ void __launch_bounds__(D, 1) kernel(const char * x) { k1(); }
template <> void f<int>(int x) { f_int(); }
int over(int a) { o1; }
int over(int a, int b) { o2; }
int over(T * x) { o3; }
int over() { o4; }
auto trailing(int x) -> std::vector<int> { t; }
enum plain returns_enum(int x) { re; }
static const char * NAMES[A_COUNT] = { "a", "b" };
static const int TWO_D[2][3] = { { 1 }, { 2 } };
const std::vector<int> kinds = { 1, 2 };
const std::vector<int> braced { 3, 4 };
auto lambda = [&](int x) mutable -> int { lam; };
int caller() { over(1); if (over(2)) { c1; } return over(3) ? 1 : 2; }
void control(int n) {
    switch (n) { case 1: s1; }
    if (n > 1 && n < 2) { i1c; } else { e1; }
    for (int i = 0; i < n; i++) { f1; }
    while (n) w1;
    if constexpr (n == 3) { ic; }
    do { d1; } while (n);
}
int K_and_macro MACRO(x) { km; }
int try_body(int n) try { tb; } catch (...) { cb; }
`

func TestScopes(t *testing.T) {
	f := Parse([]byte(source))
	for _, c := range []struct {
		scope string // nested ones separated by ▸
		want  string // first token of the body; "" for none, "2" and so on for a number of matches
	}{
		{"enum plain", "A"},
		{"enum class colour", "RED"},
		{"enum colour", "RED"},
		{"namespace ns", "enum"},
		{"namespace ns ▸ enum colour", "RED"},
		{"enum anon_enum", "C"},
		{"struct anon_struct", "int"},
		{"struct forward", ""},
		{"struct aligned", "int"},
		{"struct packed", "int"},
		{"class outer", "public"},
		{"struct outer", ""},
		{"struct inner", "int"},
		{"class outer ▸ struct inner", "int"},
		{"struct inner ▸ class outer", ""},
		{"struct holder", "T"},
		{"struct holder<int, long>", "int"},
		{"outer", "body_outer"},
		{"class outer ▸ outer(int n)", "body_outer"},
		{"~outer", "body_dtor"},
		{"get", "return"},
		{"class outer ▸ get", "return"},
		{"outer::get", "return"},
		{"operator==", "return"},
		{"operator()", "return"},
		{"operator bool", "return"},
		{"declared", ""},
		{"pure", ""},
		{"outer::outer", "ctor_body"},
		{"outer::outer(const char *)", "ctor_body"},
		{"outer::outer(int)", ""},
		{"outer::~outer", "out_dtor"},
		{"kernel", "k1"},
		{"f<int>", "f_int"},
		{"f", ""},
		{"over", "4"},
		{"over(int a)", "2"},
		{"over(int a $)", "o1"},
		{"over(int a, int b)", "o2"},
		{"over(T * x)", "o3"},
		{"over(T*x)", "o3"},
		{"over()", "o4"},
		{"trailing", "t"},
		{"returns_enum", "re"},
		{"NAMES", `"a"`},
		{"TWO_D", "{"},
		{"kinds", "1"},
		{"braced", "3"},
		{"lambda", "lam"},
		{"control ▸ switch (n)", "case"},
		{"control ▸ switch", "case"},
		{"control ▸ switch (m)", ""},
		{"control ▸ if (n > 1 && n < 2)", "i1c"},
		{"control ▸ if (n > 1)", ""},
		{"control ▸ for (int i = 0; i < n; i++)", "f1"},
		{"control ▸ while (n)", ""},
		{"control ▸ if (n == 3)", "ic"},
		{"control ▸ do", "d1"},
		{"control ▸ if", "2"},
		{"caller ▸ if (over(2))", "c1"},
		{"try_body", "tb"},
		{"MACRO", "km"},
	} {
		region, got := f.All(), ""
		for _, part := range strings.Split(c.scope, " ▸ ") {
			s, err := ParseScope(part)
			if err != nil {
				t.Fatal(err)
			}
			defs := f.Scopes(s, region)
			got = ""
			if len(defs) > 1 {
				got = string(rune('0' + len(defs)))
			}
			if len(defs) != 1 {
				break
			}
			region = f.Body(defs[0])
			got = f.Text(region.First)
		}
		if got != c.want {
			t.Errorf("%s: body begins with %q, want %q", c.scope, got, c.want)
		}
	}
}

func TestScopeSyntax(t *testing.T) {
	for text, want := range map[string]string{
		"":               `scope "": it is empty`,
		"enum":           `scope "enum": enum needs a name`,
		"enum class":     `scope "enum class": enum needs a name`,
		"(x)":            `scope "(x)": expected a name`,
		"f(":             `scope "f(": expected ( … ) after f`,
		"f(int":          `scope "f(int": expected ( … ) after f`,
		"f x":            `scope "f x": expected ( … ) after f`,
		"A::":            `scope "A::": expected a name`,
		"switch n":       `scope "switch n": expected ( … ) after switch`,
		"struct X : Y":   `scope "struct X : Y": expected a name after struct, and nothing else`,
		"// only a note": `scope "// only a note": it is empty`,
	} {
		_, err := ParseScope(text)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestScopeInBranches(t *testing.T) {
	f := Parse([]byte(`
#if X
void a(int x) {
#else
void a(long x) {
#endif
    one();
}
#ifdef Y
void b() { first(); }
#else
void b() { second(); }
#endif
#define M void c() { third(); }
`))
	for scope, want := range map[string]int{"a": 1, "b": 2, "c": 0} {
		s, _ := ParseScope(scope)
		if got := len(f.Scopes(s, f.All())); got != want {
			t.Errorf("%s: %d scopes, want %d", scope, got, want)
		}
	}
}

func TestTitles(t *testing.T) {
	f := Parse([]byte("struct a { }; int b(int x,\n  int y) { if (x  ==  y) { } } int T[2] = { 1 };"))
	var got []string
	for _, d := range f.Defs() {
		got = append(got, f.Title(d))
	}
	want := []string{"struct a", "b(int x, int y)", "if (x == y)", "T"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
