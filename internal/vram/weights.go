package vram

import (
	"fmt"
	"regexp"
	"slices"

	"dot4fa/internal/gguf"
)

var shard = regexp.MustCompile(`^(.*)-00001-of-(\d{5})\.gguf$`)

// Weights returns the bytes of a model's tensors that go to the GPU with
// -ngl 99: all of them, but for the token embedding, which stays in the host's
// memory unless it is the output matrix too. h is file's header. Of a model in
// several files all are read; 0 means that a size is not known.
func Weights(file string, h *gguf.Header) (int64, error) {
	headers := []*gguf.Header{h}
	if m := shard.FindStringSubmatch(file); m != nil {
		n := 0
		fmt.Sscanf(m[2], "%d", &n)
		for i := 2; i <= n; i++ {
			part, err := gguf.Open(fmt.Sprintf("%s-%05d-of-%s.gguf", m[1], i, m[2]))
			if err != nil {
				return 0, err
			}
			headers = append(headers, part)
		}
	} else if n, ok := h.Int("split.count"); ok && n > 1 {
		return 0, nil // not named as llama.cpp names the parts
	}
	var all, embedding int64
	output := false
	for _, h := range headers {
		for _, t := range h.Tensors {
			n, ok := t.Bytes()
			if !ok {
				return 0, nil
			}
			all += int64(n)
			output = output || t.Name == "output.weight"
			if t.Name == "token_embd.weight" {
				embedding = int64(n)
			}
		}
	}
	if output {
		all -= embedding
	}
	return all, nil
}

// Load reads the shape and the weights of the model in a file.
func Load(file string) (Shape, int64, error) {
	h, err := gguf.Open(file)
	if err != nil {
		return Shape{}, 0, err
	}
	s, err := FromGGUF(h)
	if err != nil {
		return Shape{}, 0, at(err, file)
	}
	w, err := Weights(file, h)
	if w == 0 && err == nil && !slices.ContainsFunc(h.Tensors, func(t gguf.Info) bool { return t.Name == "token_embd.weight" }) {
		s.Notes = append(s.Notes, "the file holds no weights, so their size is not known")
	}
	return s, w, err
}
