// A chat with AG-UI: text, reasoning, a card for each call, interrupts with changed arguments, a tool
// of the page, and stop.
import { HttpAgent } from '@ag-ui/client';

const agent = new HttpAgent({ url: '/v1/agui/clerk', headers: { 'X-Pawl-Disconnect': 'cancel' } });
const tools = [{ name: 'page_language', description: 'The language of the browser.', parameters: { type: 'object' } }];
const run = { page_language: () => navigator.language };
const answers = new Map(); // of interrupts, until all have one
let works = false;
let fault = '';

const element = (tag, { text, ...more } = {}, ...children) => {
	const e = Object.assign(document.createElement(tag), more);
	e.append(...(text === undefined ? [] : [text]), ...children);
	return e;
};

function question(interrupt, call) {
	const args = element('textarea', { value: call.function.arguments, rows: 2, ariaLabel: 'arguments' });
	const answer = (approved) => () => {
		let payload = { approved, reason: 'not now' };
		try {
			if (approved) payload = args.value === call.function.arguments ? { approved } : { approved, args: JSON.parse(args.value) };
		} catch (e) {
			return say(e.message);
		}
		answers.set(interrupt.id, { interruptId: interrupt.id, status: 'resolved', payload });
		if (agent.pendingInterrupts.every((q) => answers.has(q.id))) return go({ resume: [...answers.values()] });
		show();
	};
	return [
		element('div', { text: interrupt.message }),
		args,
		element('div', { className: 'row' },
			element('button', { className: 'yes', text: 'Approve', onclick: answer(true) }),
			element('button', { className: 'no', text: 'Deny', onclick: answer(false) })),
	];
}

function card(call) {
	const result = agent.messages.find((m) => m.role === 'tool' && m.toolCallId === call.id);
	const interrupt = agent.pendingInterrupts.find((q) => q.toolCallId === call.id && !answers.has(q.id));
	const state = result ? 'done' : interrupt ? 'approval requested' : 'at work';
	return element('section', { className: interrupt ? 'card asks' : 'card' },
		element('header', {}, call.function.name, element('span', { text: state })),
		...(interrupt ? question(interrupt, call) : [element('code', { text: call.function.arguments })]),
		...(result ? [element('code', { text: result.content })] : []));
}

const views = {
	user: (m) => [element('div', { className: 'user', text: m.content })],
	reasoning: (m) => [element('div', { className: 'thought', text: m.content })],
	assistant: (m) => [...(m.content ? [element('div', { className: 'text', text: m.content })] : []), ...(m.toolCalls ?? []).map(card)],
};

const list = element('div', { id: 'messages' });
const input = element('input', { ariaLabel: 'message', placeholder: 'Pay invoice 7' });
const button = element('button', { text: 'Send' });
function show() {
	list.replaceChildren(...agent.messages.flatMap((m) => views[m.role]?.(m) ?? []), ...(fault ? [element('div', { className: 'error', text: fault })] : []));
	button.textContent = works ? 'Stop' : 'Send';
}
function say(text) {
	fault = text;
	show();
}

// go runs the agent, and again while it calls tools of the page.
async function go(parameters) {
	answers.clear();
	works = true;
	say('');
	try {
		await agent.runAgent({ tools, ...parameters });
	} catch (e) {
		fault = e.message;
	}
	works = false;
	const done = new Set(agent.messages.map((m) => m.toolCallId));
	const calls = agent.messages.at(-1)?.role !== 'user' && agent.pendingInterrupts.length === 0
		? agent.messages.flatMap((m) => m.toolCalls ?? []).filter((c) => run[c.function.name] && !done.has(c.id)) : [];
	for (const c of calls) agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: c.id, content: run[c.function.name]() });
	show();
	if (calls.length > 0) await go();
}

agent.subscribe({ onMessagesChanged: show, onRunErrorEvent: ({ event }) => say(event.message) });
document.getElementById('page').append(element('h1', { text: 'AG-UI' }), list, element('form', {
	onsubmit: (e) => {
		e.preventDefault();
		if (works) return agent.abortRun();
		if (!input.value) return;
		agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: input.value });
		input.value = '';
		go();
	},
}, input, button));
