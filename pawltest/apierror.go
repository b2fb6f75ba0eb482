package pawltest

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl/llm"
)

// apiError is an error of an API. Each API writes it in its own shape.
type apiError struct {
	Status  int
	Message string
	Reason  string // OpenAI: code if Code is ""; Gemini: reason of an ErrorInfo; "" means none
	Param   string // OpenAI: the wrong parameter
	// OpenAI: code; Anthropic: error.type; Gemini: error.status. "" means the usual one for Status.
	Code       string
	RetryAfter string // Gemini writes it into the body
	wait       string // RetryAfter of an error without a Fault that has one; "" means none
}

func toAPIError(err error) *apiError {
	e := &apiError{Status: 500, Message: err.Error()}
	var p *llm.ProviderError
	if errors.As(err, &p) {
		e.Message = p.Message
		e.Reason = string(p.Code)
		if p.Status != 0 {
			e.Status = p.Status
		}
		if p.RetryAfter > 0 {
			e.wait = strconv.Itoa(int(p.RetryAfter.Seconds()))
		}
	}
	if isExhausted(err) {
		e.Status = 400
	}
	return e
}

// body returns the error in the shape of api. For an unknown path it has the shape of OpenAI.
func (e *apiError) body(api string) []byte {
	switch api {
	case Anthropic:
		return marshal(object{"type": "error", "error": object{"type": or(e.Code, anthropicErrors[e.Status], "api_error"),
			"message": e.Message}, "request_id": "req_sim"})
	case Gemini:
		inner := object{"code": e.Status, "message": e.Message, "status": or(e.Code, geminiErrors[e.Status], "UNKNOWN")}
		if n, err := strconv.Atoi(e.RetryAfter); err == nil {
			inner["details"] = []object{{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": strconv.Itoa(n) + "s"}}
		}
		if e.Reason == keyInvalid {
			inner["details"] = []object{{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": e.Reason, "domain": "googleapis.com"}}
		}
		return marshal(object{"error": inner})
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
	o := object{"message": e.Message, "type": kind}
	if e.Param != "" {
		o["param"] = e.Param
	}
	code = or(e.Code, e.Reason, code)
	if code != "" {
		o["code"] = code
	}
	return marshal(object{"error": o})
}

var anthropicErrors = map[int]string{400: "invalid_request_error", 401: "authentication_error", 402: "billing_error",
	403: "permission_error", 404: "not_found_error", 405: "invalid_request_error", 413: "request_too_large",
	422: "invalid_request_error", 429: "rate_limit_error", 500: "api_error", 503: "overloaded_error", 504: "timeout_error",
	529: "overloaded_error"}

var geminiErrors = map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
	405: "UNIMPLEMENTED", 409: "ABORTED", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 503: "UNAVAILABLE",
	504: "DEADLINE_EXCEEDED"}

// keyInvalid is Gemini's word for a wrong key.
const keyInvalid = "API_KEY_INVALID"

// write answers with the error. fault may replace body and content type.
func (e *apiError) write(w http.ResponseWriter, api string, fault *Fault) {
	if after := or(fault.RetryAfter, e.wait); after != "" {
		if _, err := strconv.Atoi(after); api == Gemini && err == nil {
			e.RetryAfter = after
		} else {
			w.Header().Set("Retry-After", after)
		}
	}
	switch api {
	case Anthropic:
		w.Header().Set("Request-Id", "req_sim")
	case Chat, Responses:
		w.Header().Set("X-Request-Id", "req_sim")
	}
	body := e.body(api)
	if fault.Body != nil {
		body = fault.Body
	}
	f := *fault
	f.Break = false
	raw(w, e.Status, "application/json", &f, body)
}
