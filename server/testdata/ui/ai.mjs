// Walks the scenarios of the AI SDK's Chat against the server at argv[2], with the major version
// argv[3] of the package ai, and prints what the page shows at the end of each.
const [root, major] = process.argv.slice(2);
const { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses: approved, lastAssistantMessageIsCompleteWithToolCalls: called } =
	await import(major === '7' ? 'ai7' : 'ai');
const { Chat } = await import(major === '7' ? 'react7' : '@ai-sdk/react');

const show = (part) => {
	if (part.type === 'text' || part.type === 'reasoning') return `${part.type}:${part.text}`;
	if (part.type.startsWith('tool-') || part.type === 'dynamic-tool') {
		const name = part.title ?? part.toolName ?? part.type.slice(5);
		return `${name}(${JSON.stringify(part.input)}) ${part.state} ${JSON.stringify(part.output) ?? part.errorText ?? ''}`.trim();
	}
	return part.type;
};
const seen = (chat) => chat.messages.filter((m) => m.role === 'assistant').map((m) => m.parts.filter((p) => p.type !== 'step-start').map(show).join(' | '));

let posts = 0;
const counted = (url, init) => {
	if (init?.method === 'POST') posts++;
	return fetch(url, init);
};
function open(id, more = {}) {
	const errors = [];
	const chat = new Chat({
		id: `${id}-${major}`,
		transport: new DefaultChatTransport({ api: `${root}/v1/ui/clerk?sdk=${major}`, fetch: more.fetch ?? counted, body: more.body, prepareReconnectToStreamRequest: ({ id }) => ({ api: `${root}/v1/ui/clerk/${encodeURIComponent(id)}/stream?sdk=${major}` }) }),
		sendAutomaticallyWhen: (o) => approved(o) || called(o),
		onError: (e) => errors.push(e.message),
		...more.chat,
	});
	chat.errors = errors;
	return chat;
}
async function idle(chat, when = () => true) {
	for (let quiet = 0; quiet < 5; ) { // what is sent automatically begins within a tick
		await new Promise((go) => setTimeout(go, 2));
		quiet = (chat.status === 'ready' || chat.status === 'error') && when() ? quiet + 1 : 0;
	}
}
const tools = (chat) => chat.messages.at(-1).parts.filter((p) => p.toolCallId);
const asks = (chat) => tools(chat).filter((p) => p.state === 'approval-requested');
const all = {};
async function scene(name, run) {
	posts = 0;
	const chat = await run();
	await idle(chat);
	all[name] = { posts, shows: seen(chat), errors: chat.errors, status: chat.status };
}
async function say(chat, text, ...more) {
	await chat.sendMessage({ text }, ...more);
	await idle(chat);
	return chat;
}
async function answer(chat, ...answers) {
	const ids = asks(chat).map((p) => p.approval.id);
	for (const [i, a] of answers.entries()) await chat.addToolApprovalResponse({ id: ids[i], ...a(ids[i]) });
	await idle(chat, () => !tools(chat).some((p) => p.state === 'approval-responded'));
	return chat;
}
const yes = () => ({ approved: true });
const no = () => ({ approved: false, reason: 'too much' });

await scene('text', () => say(open('text'), 'hello'));
await scene('reasoning', () => say(open('reasoning'), 'think'));
await scene('second message', async () => say(await say(open('second'), 'one'), 'two'));
await scene('two tools, one fails', () => say(open('tools'), 'call look Oslo, fail'));
await scene('question', () => say(open('question'), 'call pay 1'));
await scene('approve', async () => answer(await say(open('approve'), 'call pay 2'), yes));
await scene('deny', async () => answer(await say(open('deny'), 'call pay 3'), no));
await scene('one yes, one no', async () => answer(await say(open('mixed'), 'call pay 4, pay 5'), yes, no));
await scene('edited', async () =>
	answer(await say(open('edited'), 'call pay 6'), (id) => ({ approved: true, options: { body: { pawl: { edits: { [id]: { invoice: 60 } } } } } })));
await scene('asks twice', async () => answer(await answer(await say(open('twice'), 'call pay 7 then pay 8'), yes), yes));
await scene('user writes instead', async () => say(await say(open('instead'), 'call pay 9'), 'hello'));
await scene('tool of the agent for the page', async () => {
	const chat = open('passive', {});
	await say(chat, 'call ask');
	await chat.addToolOutput({ tool: 'ask', toolCallId: tools(chat)[0].toolCallId, output: 'blue' });
	await idle(chat);
	return chat;
});
await scene('tool of the page', async () => {
	const chat = open('client', { body: { tools: [{ type: 'function', function: { name: 'locate', parameters: { type: 'object' } } }] },
		chat: { onToolCall: ({ toolCall }) => { chat.addToolOutput({ tool: 'locate', toolCallId: toolCall.toolCallId, output: { city: 'Rome' } }); } } });
	return say(chat, 'call locate');
});
await scene('tool of the page and a question', async () => {
	const chat = open('both', { body: { tools: [{ type: 'function', function: { name: 'locate', parameters: { type: 'object' } } }] },
		chat: { onToolCall: ({ toolCall }) => { chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: { city: 'Rome' } }); } } });
	await say(chat, 'call locate, pay 20');
	return answer(chat, yes);
});
await scene('regenerate', async () => {
	const chat = await say(open('again'), 'count');
	await chat.regenerate();
	await idle(chat);
	await chat.regenerate();
	return chat;
});
await scene('edit', async () => {
	const chat = await say(await say(open('edit'), 'one'), 'two');
	await chat.sendMessage({ text: 'zwei', messageId: chat.messages.at(-2).id });
	return chat;
});
await scene('reload while it waits', async () => {
	await say(open('reload'), 'call look a, pay 10');
	const chat = open('reload', { chat: { messages: (await (await fetch(`${root}/v1/ui/clerk/reload-${major}`)).json()).messages } });
	await chat.resumeStream();
	await idle(chat);
	return answer(chat, yes);
});
await scene('reload while it works', async () => {
	const first = open('works');
	const sent = first.sendMessage({ text: 'call wait' });
	await until(() => first.messages.at(-1)?.parts.some((p) => p.state === 'input-available'));
	first.stop();
	await sent;
	const chat = open('works', { chat: { messages: (await (await fetch(`${root}/v1/ui/clerk/works-${major}`)).json()).messages } });
	const resumed = chat.resumeStream();
	await until(() => chat.status === 'streaming');
	await fetch(`${root}/test/release`, { method: 'POST' });
	await resumed;
	return chat;
});
await scene('stop', async () => {
	const chat = open('stop');
	const began = await waits();
	const sent = chat.sendMessage({ text: 'call wait' });
	while ((await waits()) === began);
	await until(() => chat.messages.at(-1)?.parts.some((p) => p.state === 'input-available'));
	chat.stop(); // it disconnects, and nothing else
	await sent;
	let messages;
	const over = () => messages?.at(-1).parts.some((p) => p.state === 'output-error');
	while (!over()) ({ messages } = await (await fetch(`${root}/v1/ui/clerk/stop-${major}`)).json());
	return open('stop', { chat: { messages } });
});
await scene('history', async () => {
	const chat = open('history', {});
	await answer(await say(await say(chat, 'one'), 'call pay 11'), yes);
	const { messages } = await (await fetch(`${root}/v1/ui/clerk/history-${major}`)).json();
	const copy = open('copy', { chat: { messages } });
	if (JSON.stringify(seen(copy)) !== JSON.stringify(seen(chat)) || messages.map((m) => m.id).join() !== chat.messages.map((m) => m.id).join())
		chat.errors.push('the history differs: ' + JSON.stringify(messages));
	return chat;
});
await scene('failing model', () => say(open('fails'), 'break'));
await scene('failing model behind a write', async () => answer(await say(open('breaks'), 'call pay 12 then break'), yes));
await scene('end behind a tool', () => say(open('end'), 'call end'));
await scene('end without a text', () => say(open('quit'), 'call quit'));
await scene('end without the mark', async () => {
	const unmarked = async (url, init) => {
		if (++posts > 5) throw new Error('enough');
		const res = await fetch(url, init);
		return new Response((await res.text()).replaceAll('"providerExecuted":true,', ''), { headers: res.headers });
	};
	return say(open('unmarked', { fetch: unmarked }), 'call quit');
});
posts = Math.min(posts, 5);
all['end without the mark'].posts = posts;
all['nothing to resume'] = (await fetch(`${root}/v1/ui/clerk/unknown/stream`)).status;
console.log(JSON.stringify(all));

async function waits() { // how many calls of the tool wait have begun
	return (await fetch(`${root}/test/waits`)).text();
}
async function until(done) {
	while (!done()) await new Promise((go) => setTimeout(go, 2));
}
