package dialect

import (
	"slices"
	"strings"
)

// drafts converts keywords of older drafts with the same meaning.
func (n *normalizer) drafts(o *object) {
	if s := o.text("$schema"); s != "" && !strings.Contains(s, "2020-12") {
		n.old = n.old || strings.Contains(s, "draft-0") && !strings.Contains(s, "2019")
		n.change(o.ptr, "$schema %s is left out; the rest is read as draft 2020-12", s)
		o.remove("$schema")
	}
	if n.old && o.text("$ref") != "" && !onlyAnnotated(o, "$ref") {
		n.change(o.ptr, "keywords next to $ref have no meaning in this draft and are left out")
		for _, k := range slices.Clone(o.keys) {
			if k != "$ref" && slices.Contains(vocabulary, k) {
				o.remove(k)
			}
		}
	}

	n.exclusive(o, "exclusiveMinimum", "minimum")
	n.exclusive(o, "exclusiveMaximum", "maximum")
	n.tuple(o)
	n.dependencies(o)
}

// exclusive converts an exclusive limit of draft 4, which is a boolean next to the limit.
func (n *normalizer) exclusive(o *object, exclusive, limit string) {
	b, ok := o.get(exclusive).(bool)
	if !ok {
		return
	}
	n.change(o.ptr, "%s: %v is read as of draft 4", exclusive, b)
	v := o.get(limit)
	o.remove(exclusive)
	if b && v != nil {
		o.remove(limit)
		o.set(exclusive, v)
	}
}

// tuple converts items as a list.
func (n *normalizer) tuple(o *object) {
	list, ok := o.get("items").([]any)
	if !ok {
		o.remove("additionalItems") // it has no meaning without a list
		return
	}

	n.change(o.ptr, "items as a list is rewritten as prefixItems")
	rest := o.get("additionalItems")
	more := o.has("additionalItems")
	o.remove("items", "additionalItems")
	if len(list) > 0 {
		o.set("prefixItems", list)
	}
	if more {
		o.set("items", rest)
	}
}

// dependencies converts the keyword that has been split into two.
func (n *normalizer) dependencies(o *object) {
	deps := o.object("dependencies")
	if deps == nil {
		return
	}

	n.change(o.ptr, "dependencies is rewritten as dependentRequired and dependentSchemas")
	names := newObject(o.ptr)
	schemas := newObject(o.ptr)
	for _, k := range deps.keys {
		if isList(deps.vals[k]) {
			names.set(k, deps.vals[k])
		} else {
			schemas.set(k, deps.vals[k])
		}
	}
	o.remove("dependencies")
	if len(names.keys) > 0 {
		o.set("dependentRequired", names)
	}
	if len(schemas.keys) > 0 {
		o.set("dependentSchemas", schemas)
	}
}
