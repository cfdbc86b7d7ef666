package code

import (
	"fmt"
	"testing"
)

func TestUnpack(t *testing.T) {
	v, rest, err := unpack([]byte{0x82, 0xa1, 'a', 0xcd, 0x01, 0x02, 0xa1, 'b', 0x93, 0xff, 0xc3, 0xc0}, 0)
	if err != nil || len(rest) != 0 || fmt.Sprint(v) != "map[a:258 b:[-1 true <nil>]]" {
		t.Errorf("%v, %d left, %v", v, len(rest), err)
	}
	for _, bad := range [][]byte{nil, {0x81}, {0xd9, 5, 'a'}, {0xdf, 0xff, 0xff, 0xff, 0xff}, {0xc1}, {0xdd, 0, 0, 0, 2, 1}} {
		if v, _, err := unpack(bad, 0); err == nil {
			t.Errorf("unpack(% x) = %v", bad, v)
		}
	}
}
