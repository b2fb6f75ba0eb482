package server

func (c *call) openAIError(e *Error) { writeError(c.w, e) }
