package fault

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// hintless lists the functions that make a fault without a hint, and why that
// is right. A function stands as package/path.func or package/path.type.method.
var hintless = map[string]string{
	"hostrun.Program.runSlice": judged,
	"hostrun.Case.Judge":       judged,
	"rdna3.Load":               judged,
	"rdna3.wave.fail":          judged,
	"rdna3.Kernel.Run":         judged,
	"rdna3.Kernel.arguments":   judged,
	"rdna3/selfcheck.pack":     judged,
	"rdna3/selfcheck.sameBits": judged,
}

const judged = "both self checks, of the host and of the emulator, say what a failed case launched and how to go on"

// A fault tells its reader what to do next. Every place of the source that
// makes one gives it a hint, or is listed with the reason why not.
func TestHints(t *testing.T) {
	fset := token.NewFileSet()
	packages := map[string][]*ast.File{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), "../")
		packages[dir] = append(packages[dir], file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	made, used := 0, map[string]bool{}
	for dir, files := range packages {
		n, bad := withoutHint(files)
		made += n
		for _, b := range bad {
			where := dir + "." + b.in
			if hintless[where] == "" {
				t.Errorf("%s: a fault without a hint, in %s", fset.Position(b.pos), where)
			}
			used[where] = true
		}
	}
	if made < 100 {
		t.Errorf("%d faults found in the source: the test does not look where they are", made)
	}
	for where := range hintless {
		if !used[where] {
			t.Errorf("%s is listed as making a fault without a hint, and makes none", where)
		}
	}
}

// The finder of faults without hints finds them, in each way of making one.
func TestWithoutHint(t *testing.T) {
	for body, want := range map[string]int{
		`return fault.New(1, "x")`:                                                       1,
		`return fault.New(1, "x").At("y")`:                                               1,
		`return fault.New(1, "x").At("y").Hintf("z")`:                                    0,
		`return fault.New(1, "x").Hintf("z").At("y")`:                                    0,
		`return &fault.Error{What: "x"}`:                                                 1,
		`return &fault.Error{What: "x", Hint: "z"}`:                                      0,
		`e := fault.New(1, "x"); return e`:                                               1,
		`e := fault.New(1, "x"); return e.Hintf("z")`:                                    0,
		`e := fault.New(1, "x"); e.Hint = "z"; return e`:                                 0,
		`e := fault.New(1, "x"); return other.Hintf("z")`:                                1,
		`if e := fault.New(1, "x").At("y"); true { return e.Hintf("") }`:                 0,
		`return keep(fault.New(1, fault.New(2, "y").What).Hintf("z"))`:                   1,
		`return bad("x").Hintf("z")`:                                                     0,
		`return bad("x")`:                                                                1,
		`return d.worse("x")`:                                                            1,
		`return good("x")`:                                                               0,
		`at := func() *fault.Error { return fault.New(1, "x") }; return at()`:            1,
		`at := func() *fault.Error { return fault.New(1, "x") }; return at().Hintf("z")`: 0,
	} {
		src := fmt.Sprintf(`package p
			func f() error { %s }
			func bad(what string) *fault.Error { return fault.New(1, what) }
			func (d *decoder) worse(what string) *fault.Error { return bad(what) }
			func good(what string) *fault.Error { return bad(what).Hintf("z") }`, body)
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if _, bad := withoutHint([]*ast.File{file}); len(bad) != want {
			t.Errorf("%s: %d faults without a hint, not %d", body, len(bad), want)
		}
	}
}

// place is where a fault is made, and the declaration it is made in.
type place struct {
	pos token.Pos
	in  string
}

// withoutHint returns how many faults a package makes, and where it makes those
// that get no hint: neither in the chain of calls they are made in nor, where
// the chain is given to a variable, by that variable. What a function makes
// that returns a *fault.Error and nothing else is its callers' to give a hint.
func withoutHint(files []*ast.File) (made int, bad []place) {
	makers := map[string]bool{}
	for again := true; again; {
		again, made, bad = false, 0, nil
		for _, file := range files {
			for _, decl := range file.Decls {
				s := finder{makers: makers, fault: file.Name.Name == "fault", chained: map[ast.Expr]*ast.CallExpr{},
					holder: map[ast.Expr]string{}, hinted: map[string]bool{}, maker: map[ast.Expr]string{}, apart: map[*ast.FuncLit]bool{}}
				if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
					s.find(f.Body, makerName(f.Name, f.Type))
				} else {
					s.find(decl, "")
				}
				made += len(s.made)
				for _, e := range s.made {
					switch maker := s.maker[e]; {
					case s.hasHint(e):
					case maker == "":
						bad = append(bad, place{e.Pos(), declName(decl)})
					case !makers[maker]:
						makers[maker], again = true, true
					}
				}
			}
		}
	}
	return made, bad
}

// finder looks for the faults of one declaration.
type finder struct {
	makers  map[string]bool // functions whose results have no hint
	fault   bool            // the package is fault itself
	made    []ast.Expr
	maker   map[ast.Expr]string        // a fault to the maker it is made in
	chained map[ast.Expr]*ast.CallExpr // an expression to the call of its method
	holder  map[ast.Expr]string        // an expression to the variable it is given to
	hinted  map[string]bool            // variables that get a hint
	apart   map[*ast.FuncLit]bool      // makers, looked through on their own
}

func (s *finder) find(node ast.Node, maker string) {
	if node == nil {
		return
	}
	add := func(e ast.Expr) {
		s.made = append(s.made, e)
		s.maker[e] = maker
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return !s.apart[n]
		case *ast.CallExpr:
			switch fun := n.Fun.(type) {
			case *ast.Ident:
				if s.makers[fun.Name] || s.fault && fun.Name == "New" {
					add(n)
				}
			case *ast.SelectorExpr:
				id, ok := fun.X.(*ast.Ident)
				if s.makers[fun.Sel.Name] || ok && id.Name == "fault" && fun.Sel.Name == "New" {
					add(n)
				}
				if ok && fun.Sel.Name == "Hintf" {
					s.hinted[id.Name] = true
				}
				s.chained[fun.X] = n
			}
		case *ast.UnaryExpr:
			if lit, ok := n.X.(*ast.CompositeLit); ok && n.Op == token.AND && isFault(lit.Type) {
				add(n)
			}
		case *ast.AssignStmt:
			for i, rhs := range n.Rhs {
				if len(n.Lhs) != len(n.Rhs) {
					break
				}
				switch lhs := n.Lhs[i].(type) {
				case *ast.Ident:
					s.holder[rhs] = lhs.Name
					if f, ok := rhs.(*ast.FuncLit); ok {
						if name := makerName(lhs, f.Type); name != "" {
							s.find(f.Body, name)
							s.apart[f] = true
						}
					}
				case *ast.SelectorExpr:
					if id, ok := lhs.X.(*ast.Ident); ok && lhs.Sel.Name == "Hint" {
						s.hinted[id.Name] = true
					}
				}
			}
		}
		return true
	})
}

func (s *finder) hasHint(e ast.Expr) bool {
	if u, ok := e.(*ast.UnaryExpr); ok {
		for _, elt := range u.X.(*ast.CompositeLit).Elts {
			if kv, ok := elt.(*ast.KeyValueExpr); ok && fmt.Sprint(kv.Key) == "Hint" {
				return true
			}
		}
	}
	for next := s.chained[e]; next != nil; next = s.chained[e] {
		if next.Fun.(*ast.SelectorExpr).Sel.Name == "Hintf" {
			return true
		}
		e = next
	}
	return s.hinted[s.holder[e]]
}

// makerName is the name of a function that returns a fault and nothing else.
func makerName(name *ast.Ident, typ *ast.FuncType) string {
	if typ.Results == nil || len(typ.Results.List) != 1 {
		return ""
	}
	if star, ok := typ.Results.List[0].Type.(*ast.StarExpr); !ok || !isFault(star.X) {
		return ""
	}
	return name.Name
}

func isFault(typ ast.Expr) bool {
	sel, ok := typ.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Error" && fmt.Sprint(sel.X) == "fault"
}

func declName(decl ast.Decl) string {
	f, ok := decl.(*ast.FuncDecl)
	if !ok {
		return "var"
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	return fmt.Sprint(typ) + "." + f.Name.Name
}
