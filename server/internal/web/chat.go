package web

// Json returns v as JSON without secrets.
func (c *Call) Json(v any) []byte {
	b, err := c.S.Marshal(v)
	if err != nil {
		return []byte("{}")
	}
	return b
}
