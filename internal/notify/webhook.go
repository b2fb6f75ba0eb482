package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/webaddress"
)

// open returns the channel of a webhook.
func (h *Webhook) open(getenv func(string) string) (c Channel, _ *SlackApp, err error) {
	if _, ok := webaddress.Parse(h.URL); !ok {
		return c, nil, &SettingError{"webhook.url", "want an address, such as https://hooks.example.com/pawl"}
	}
	const variable = "webhook.secret_env"
	text, err := secret(getenv, variable, h.SecretEnv)
	if err != nil {
		return c, nil, err
	}
	key := []byte(text)
	if coded, ok := strings.CutPrefix(text, "whsec_"); ok {
		key, err = base64.StdEncoding.DecodeString(coded)
		if err != nil {
			return c, nil, &SettingError{variable, "the variable " + h.SecretEnv + " has no base64 after whsec_"}
		}
	}

	c.Idempotent = true
	c.Send = func(ctx context.Context, e *Event) error {
		body, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return post(ctx, h.URL, body, signed(key, e.ID, time.Now(), body))
	}
	return c, nil, nil
}

// signed returns the headers of a request that follows Standard Webhooks: its ID, its time, and a
// signature of both and of the body.
func signed(key []byte, id string, now time.Time, body []byte) http.Header {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	return http.Header{
		"Webhook-Id":        {id},
		"Webhook-Timestamp": {at},
		"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}
}

// client follows no redirect: the address of the file is the only one.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// post sends a body as JSON. The error has no address, which may be a secret.
func post(ctx context.Context, address string, body []byte, head http.Header) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address is invalid")
	}
	if head != nil {
		req.Header = head
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return unanswered(err)
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver answered with status %d", res.StatusCode)
	}
	return nil
}

// unanswered returns the error of a request without an answer. A connection that was never made
// has sent nothing.
func unanswered(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // without the address
	}
	var dialled *net.OpError
	if errors.As(err, &dialled) && dialled.Op == "dial" {
		return fmt.Errorf("the receiver cannot be reached: %w", dialled.Err)
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}
