package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/webaddress"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// SlackApp is an app of Slack whose buttons answer questions.
type SlackApp struct {
	secret    string
	approvers []string
	webhook   string
}

// open returns the channel of a message in Slack, and its app if it has buttons.
func (s *Slack) open(getenv func(string) string) (c Channel, app *SlackApp, err error) {
	address, err := secret(getenv, "slack.webhook_env", s.WebhookEnv)
	if err != nil {
		return c, nil, err
	}
	if _, ok := webaddress.Parse(address); !ok {
		return c, nil, &SettingError{"slack.webhook_env", s.WebhookEnv + " has no address of a webhook"}
	}
	if (s.SigningEnv == "") != (len(s.Approvers) == 0) {
		return c, nil, &SettingError{"slack", "buttons need both signing_env and approvers"}
	}
	if s.SigningEnv != "" {
		key, err := secret(getenv, "slack.signing_env", s.SigningEnv)
		if err != nil {
			return c, nil, err
		}
		app = &SlackApp{key, s.Approvers, address}
	}

	c.Send = func(ctx context.Context, e *Event) error {
		body, err := json.Marshal(slackMessage(e, app != nil))
		if err != nil {
			return err
		}
		return post(ctx, address, body, nil)
	}
	return c, app, nil
}

type object = map[string]any

// slackMessage returns an event as a message of Slack. Its texts are plain: what a model wrote
// cannot mention people or form links.
func slackMessage(e *Event, buttons bool) object {
	blocks := []object{
		{"type": "header", "text": plain(e.Title(), 150)},
		{"type": "section", "text": plain(e.Body(), 2900)},
	}
	if e.Question != nil && buttons {
		blocks = append(blocks, object{"type": "actions", "elements": []object{
			button(e, "Approve", "primary", true),
			button(e, "Deny", "danger", false),
		}})
	}
	return object{"text": escaped(e.Title()), "blocks": blocks}
}

// escaped returns a text in which Slack finds no mention and no link.
func escaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

func plain(text string, most int) object {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return object{"type": "plain_text", "text": text, "emoji": false}
}

// press is what a button says when it is pressed.
type press struct {
	Tenant  string  `json:"t,omitzero"`
	User    string  `json:"u,omitzero"`
	Run     string  `json:"r"`
	Key     llm.Key `json:"k"`
	Digest  string  `json:"d"`
	Approve bool    `json:"a"`
}

func button(e *Event, label, style string, approve bool) object {
	value, err := json.Marshal(press{e.Tenant, e.User, e.Run, e.Question.Key, e.Question.Digest, approve})
	if err != nil {
		panic(err) // strings always have a form
	}
	return object{
		"type":      "button",
		"action_id": strings.ToLower(label),
		"style":     style,
		"text":      plain(label, 75),
		"value":     string(value),
	}
}

// Callback handles the requests of Slack's buttons. A request counts if one of the apps signed it
// in the last five minutes, and if an approver of this app pressed the button.
type Callback struct {
	Apps []*SlackApp
	// Decide answers a question. by is the person.
	Decide func(ctx context.Context, scope store.Scope, run, by string, d llm.Decision) error
}

// maxCallback limits the body of a request.
const maxCallback = 256 << 10

// ServeHTTP handles POST /hooks/slack.
func (c *Callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallback))
	if err != nil {
		http.Error(w, "the request is too large", http.StatusRequestEntityTooLarge)
		return
	}
	app := c.signer(r.Header, body)
	if app == nil {
		http.Error(w, "the signature is wrong or too old", http.StatusUnauthorized)
		return
	}
	pressed, by, reply, err := readPress(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !slices.Contains(app.approvers, by.ID) {
		app.answer(r.Context(), reply, by.ID+" is no approver, so nothing was decided.")
		w.WriteHeader(http.StatusOK) // Slack shows an error for any other status
		return
	}

	d := llm.Decision{Key: pressed.Key, Digest: pressed.Digest, Approve: pressed.Approve}
	word := "approved"
	if !pressed.Approve {
		word = "denied"
		d.Reason = "denied in Slack"
	}
	text := fmt.Sprintf("%s was %s by %s.", pressed.Run, word, by.ID)
	who := "slack " + by.ID
	scope := store.Scope{Tenant: pressed.Tenant, User: pressed.User}
	if err := c.Decide(r.Context(), scope, pressed.Run, who, d); err != nil {
		text = "Nothing was decided: " + err.Error()
	}
	app.answer(r.Context(), reply, text)
	w.WriteHeader(http.StatusOK)
}

// maxAge is the age of a request that counts, as Slack recommends.
const maxAge = 5 * time.Minute

// signer returns the app that signed a request. Nil means that none did, or not recently.
func (c *Callback) signer(head http.Header, body []byte) *SlackApp {
	stated := head.Get("X-Slack-Request-Timestamp")
	seconds, err := strconv.ParseInt(stated, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > maxAge {
		return nil
	}
	for _, app := range c.Apps {
		mac := hmac.New(sha256.New, []byte(app.secret))
		fmt.Fprintf(mac, "v0:%s:%s", stated, body)
		want := "v0=" + hex.EncodeToString(mac.Sum(nil))
		if hmac.Equal([]byte(want), []byte(head.Get("X-Slack-Signature"))) {
			return app
		}
	}
	return nil
}

// member is a person in Slack.
type member struct {
	ID string `json:"id"`
}

// readPress returns the button that was pressed, who pressed it, and where the answer goes.
func readPress(body []byte) (p press, by member, reply string, err error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return p, by, "", errors.New("the body is no form")
	}
	var payload struct {
		User        member `json:"user"`
		ResponseURL string `json:"response_url"`
		Actions     []struct {
			Value string `json:"value"`
		} `json:"actions"`
	}
	err = json.Unmarshal([]byte(form.Get("payload")), &payload)
	if err != nil || len(payload.Actions) != 1 {
		return p, by, "", errors.New("the payload is no press of a button")
	}
	if err := json.Unmarshal([]byte(payload.Actions[0].Value), &p); err != nil {
		return p, by, "", errors.New("the button is none of pawl's")
	}
	return p, payload.User, payload.ResponseURL, nil
}

// answer replaces the message with a text. The address must be at the host of the app's webhook.
func (a *SlackApp) answer(ctx context.Context, address, text string) {
	to, err := url.Parse(address)
	webhook, bad := url.Parse(a.webhook)
	if err != nil || bad != nil || to.Host != webhook.Host || to.Scheme != webhook.Scheme {
		return
	}
	body, err := json.Marshal(object{"replace_original": true, "text": escaped(text)})
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if err == nil {
		post(ctx, address, body, nil) // the decision is made; the answer is a courtesy
	}
}
