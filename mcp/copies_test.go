package mcp

import (
	"encoding/json"
	"reflect"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl/llm"
)

// The digest of a definition covers every field. A new field of Definition must be part of the
// digest, or a lock would accept a changed tool.
func TestDigestHasEveryField(t *testing.T) {
	var base Definition
	of := reflect.TypeFor[Definition]()
	for i := range of.NumField() {
		d := base
		switch f := reflect.ValueOf(&d).Elem().Field(i); f.Interface().(type) {
		case string:
			f.SetString("x")
		case json.RawMessage:
			f.SetBytes([]byte(`{"x":1}`))
		default:
			t.Fatalf("the test knows no value for Definition.%s", of.Field(i).Name)
		}
		if d.Digest() == base.Digest() {
			t.Errorf("Definition.%s is not in the digest", of.Field(i).Name)
		}
	}
}

// An SDK tool definition has every field of a tool, except the fields that no model receives.
func TestDefinitionHasEveryField(t *testing.T) {
	known := map[string]string{"InputSchema": "Input", "OutputSchema": "Output", "Name": "Name", "Title": "Title",
		"Description": "Description", "Annotations": "Annotations", "Meta": "", "Icons": ""}
	of := reflect.TypeFor[sdk.Tool]()
	for i := range of.NumField() {
		name := of.Field(i).Name
		own, ok := known[name]
		if !ok {
			t.Errorf("sdk.Tool.%s is new: does session.definition have it?", name)
		}
		if _, there := reflect.TypeFor[Definition]().FieldByName(own); own != "" && !there {
			t.Errorf("Definition has no field %s", own)
		}
	}
}

// A result for clients has every field of a result, except the fields about the run.
func TestResultHasEveryField(t *testing.T) {
	known := map[string]bool{"Parts": true, "IsError": true, "Data": true, "CallID": false, "Key": false,
		"LeftOut": false, "Label": false} // a label is not for clients
	of := reflect.TypeFor[llm.ToolResult]()
	for i := range of.NumField() {
		if _, ok := known[of.Field(i).Name]; !ok {
			t.Errorf("llm.ToolResult.%s is new: does toResult have it?", of.Field(i).Name)
		}
	}
}
