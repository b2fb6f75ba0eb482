package main

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"os/exec"

	"github.com/pawl-go/pawl/llm"
)

// pipe is a provider of our own: a program that reads the messages as JSON and writes its answer.
type pipe string

// Stream runs the program and yields what it writes.
func (p pipe) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		messages, err := json.Marshal(req.Messages)
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		cmd := exec.CommandContext(ctx, string(p))
		cmd.Stdin = bytes.NewReader(messages)
		answer, err := cmd.Output()
		if err != nil {
			yield(llm.Delta{}, &llm.ProviderError{Provider: "pipe", Code: llm.CodeServer, Retryable: true, Err: err})
			return
		}
		_ = yield(llm.Delta{Part: llm.Text{Text: string(answer)}, Model: string(p)}, nil) &&
			yield(llm.Delta{Finish: llm.FinishReasonStop}, nil)
	}
}
