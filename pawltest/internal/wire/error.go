package wire

import (
	"cmp"
	"strconv"
)

// Error is an error of an API. Each API writes it in its own shape.
type Error struct {
	Status  int
	Message string
	Reason  string // OpenAI: code if Code is ""; Gemini: reason of an ErrorInfo; "" means none
	Param   string // OpenAI: the wrong parameter
	// OpenAI: code; Anthropic: error.type; Gemini: error.status. "" means the usual one for Status.
	Code string
	// RetryAfter is the wait for the client, in seconds or as a date: a header, or (Gemini, in
	// seconds) in the body. "" means none.
	RetryAfter string
}

// Body returns the error in the shape of api. For an unknown path it has the shape of OpenAI.
func (e *Error) Body(api string) []byte {
	switch api {
	case Anthropic:
		return Marshal(Object{"type": "error", "error": Object{"type": cmp.Or(e.Code, anthropicErrors[e.Status], "api_error"),
			"message": e.Message}, "request_id": "req_sim"})
	case Gemini:
		inner := Object{"code": e.Status, "message": e.Message, "status": cmp.Or(e.Code, geminiErrors[e.Status], "UNKNOWN")}
		if n, err := strconv.Atoi(e.RetryAfter); err == nil {
			inner["details"] = []Object{{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": strconv.Itoa(n) + "s"}}
		}
		if e.Reason == KeyInvalid {
			inner["details"] = []Object{{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": e.Reason, "domain": "googleapis.com"}}
		}
		return Marshal(Object{"error": inner})
	}
	kind := "invalid_request_error"
	code := ""
	switch {
	case e.Status == 401:
		code = "invalid_api_key"
	case e.Status == 404:
		code = "not_found"
	case e.Status == 429:
		kind = "requests"
		code = "rate_limit_exceeded"
	case e.Status >= 500:
		kind = "server_error"
		code = "server_error"
	}
	o := Object{"message": e.Message, "type": kind}
	if e.Param != "" {
		o["param"] = e.Param
	}
	code = cmp.Or(e.Code, e.Reason, code)
	if code != "" {
		o["code"] = code
	}
	return Marshal(Object{"error": o})
}

var anthropicErrors = map[int]string{400: "invalid_request_error", 401: "authentication_error", 402: "billing_error",
	403: "permission_error", 404: "not_found_error", 405: "invalid_request_error", 413: "request_too_large",
	422: "invalid_request_error", 429: "rate_limit_error", 500: "api_error", 503: "overloaded_error", 504: "timeout_error",
	529: "overloaded_error"}

var geminiErrors = map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
	405: "UNIMPLEMENTED", 409: "ABORTED", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 503: "UNAVAILABLE",
	504: "DEADLINE_EXCEEDED"}

// KeyInvalid is Gemini's word for a wrong key.
const KeyInvalid = "API_KEY_INVALID"
