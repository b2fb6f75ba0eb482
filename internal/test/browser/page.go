package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// Event is something that happened in a page: the method of the DevTools protocol, and its
// parameters.
type Event struct {
	Method string
	Params json.RawMessage
}

// Page is a page of a Browser. It may be used concurrently.
type Page struct {
	b       *Browser
	target  string
	session string

	mu     sync.Mutex
	events []Event
	more   chan struct{} // closed after each event
}

func (p *Page) took(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
	close(p.more)
	p.more = make(chan struct{})
}

// Events returns the events of the page so far, for the given methods. No methods means all.
func (p *Page) Events(methods ...string) (found []Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		for _, m := range methods {
			if m == e.Method {
				found = append(found, e)
			}
		}
		if len(methods) == 0 {
			found = append(found, e)
		}
	}
	return found
}

// Forget drops the events so far.
func (p *Page) Forget() {
	p.mu.Lock()
	p.events = nil
	p.mu.Unlock()
}

// Close closes the page.
func (p *Page) Close(ctx context.Context) error {
	return p.b.call(ctx, "", "Target.closeTarget", map[string]any{"targetId": p.target}, nil)
}

// Call sends a command of the DevTools protocol to the page; result may be nil.
func (p *Page) Call(ctx context.Context, method string, params, result any) error {
	return p.b.call(ctx, p.session, method, params, result)
}

// Open loads an address, and returns when it is loaded.
func (p *Page) Open(ctx context.Context, url string) error {
	var res struct{ ErrorText string }
	before := len(p.Events("Page.loadEventFired"))
	if err := p.Call(ctx, "Page.navigate", map[string]any{"url": url}, &res); err != nil {
		return err
	}
	if res.ErrorText != "" {
		return fmt.Errorf("%s: %s", url, res.ErrorText)
	}
	for {
		p.mu.Lock()
		more := p.more
		p.mu.Unlock()
		if len(p.Events("Page.loadEventFired")) > before {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", url, context.Cause(ctx))
		}
	}
}

// Eval evaluates an expression in the page, waits for it if it is a promise, and reads its value
// into out, which may be nil.
func (p *Page) Eval(ctx context.Context, expression string, out any) error {
	var res struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := p.Call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &res)
	if err != nil {
		return err
	}
	if e := res.ExceptionDetails; e != nil {
		return fmt.Errorf("%s: %s %s", short(expression), e.Text, e.Exception.Description)
	}
	if out == nil || res.Result.Value == nil {
		return nil
	}
	return json.Unmarshal(res.Result.Value, out)
}

// Until waits until an expression is true in the page. It checks at each frame that the page draws.
func (p *Page) Until(ctx context.Context, expression string) error {
	err := p.Eval(ctx, `new Promise((ok) => { const look = () => { let v; try { v = (`+expression+`) } catch {} v ? ok(true) : setTimeout(look, 15) }; look() })`, nil)
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", short(expression), err)
	}
	return nil
}

// key is a key of a keyboard.
type key struct {
	code, text string
	number     int
}

var named = map[string]key{
	"Tab": {"Tab", "", 9}, "Enter": {"Enter", "\r", 13}, "Escape": {"Escape", "", 27}, " ": {"Space", " ", 32}, "Backspace": {"Backspace", "", 8},
	"ArrowLeft": {"ArrowLeft", "", 37}, "ArrowUp": {"ArrowUp", "", 38}, "ArrowRight": {"ArrowRight", "", 39}, "ArrowDown": {"ArrowDown", "", 40}, "End": {"End", "", 35}, "Home": {"Home", "", 36},
}

// Press presses keys, one after another: names such as Tab and ArrowDown, or single characters. The
// prefixes Shift+ and Ctrl+ hold these keys down.
func (p *Page) Press(ctx context.Context, keys ...string) error {
	for _, name := range keys {
		modifiers := 0
		for {
			if rest, ok := strings.CutPrefix(name, "Shift+"); ok {
				modifiers, name = modifiers|8, rest
			} else if rest, ok := strings.CutPrefix(name, "Ctrl+"); ok {
				modifiers, name = modifiers|2, rest
			} else {
				break
			}
		}
		k, ok := named[name]
		if !ok {
			k = key{"", name, int(strings.ToUpper(name)[0])}
			if c := name[0]; c >= 'a' && c <= 'z' {
				k.code = "Key" + strings.ToUpper(name)
			} else if c < 'A' || c > 'Z' {
				k.number = 0
			}
		}
		if modifiers&2 != 0 {
			k.text = ""
		}
		params := map[string]any{"type": "keyDown", "key": name, "code": k.code, "windowsVirtualKeyCode": k.number, "modifiers": modifiers, "text": k.text}
		if k.text == "" {
			params["type"] = "rawKeyDown"
		}
		if err := p.Call(ctx, "Input.dispatchKeyEvent", params, nil); err != nil {
			return err
		}
		params["type"] = "keyUp"
		delete(params, "text")
		if err := p.Call(ctx, "Input.dispatchKeyEvent", params, nil); err != nil {
			return err
		}
	}
	return nil
}

// Type types text into the focused element.
func (p *Page) Type(ctx context.Context, text string) error {
	return p.Call(ctx, "Input.insertText", map[string]any{"text": text}, nil)
}

// Look sets the size of the page, in CSS pixels, and whether it prefers light or dark.
func (p *Page) Look(ctx context.Context, width, height int, scheme string) error {
	if err := p.Call(ctx, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil); err != nil {
		return err
	}
	return p.Call(ctx, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Screenshot returns the image of the page as PNG.
func (p *Page) Screenshot(ctx context.Context) ([]byte, error) {
	var res struct{ Data string }
	if err := p.Call(ctx, "Page.captureScreenshot", map[string]any{"format": "png"}, &res); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(res.Data)
}
