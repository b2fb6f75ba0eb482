// The clients of the UI protocols while a tool is quiet, and with structured output behind prose: prints what each has at the end.
const root = process.argv[2];
process.env.SUPPRESS_TRANSFORMATION_WARNINGS = '';
console.warn = console.error = () => {};
const all = {};

async function chat(major, agent, text) {
	const { DefaultChatTransport } = await import(major === '7' ? 'ai7' : 'ai');
	const { Chat } = await import(major === '7' ? 'react7' : '@ai-sdk/react');
	const errors = [];
	const chat = new Chat({ id: `${text}-${major}`, onError: (e) => errors.push(e.message),
		transport: new DefaultChatTransport({ api: `${root}/v1/ui/${agent}?sdk=${major}` }) });
	await chat.sendMessage({ text });
	const show = (p) => (p.type === 'text' ? p.text : p.type.startsWith('tool-') || p.type === 'dynamic-tool' ? p.output : p.type.startsWith('data-') ? JSON.stringify(p.data) : null);
	return [...chat.messages.at(-1).parts.map(show).filter((p) => p !== null && p !== undefined), ...errors].join(' | ');
}
async function agui(version, agent, text) {
	const { HttpAgent } = await import(version === '0' ? 'ag-ui-old' : '@ag-ui/client');
	const client = new HttpAgent({ url: `${root}/v1/agui/${agent}`, threadId: `${text}-${version}` });
	let end;
	client.subscribe({ onRunFinishedEvent: ({ event }) => void (end = event.result), onRunErrorEvent: ({ event }) => void (end = event.message) });
	client.addMessage({ id: 'u1', role: 'user', content: text });
	await client.runAgent().catch((e) => (end ??= e.message));
	return [...client.messages.slice(1).map((m) => m.content).filter(Boolean), ...(end === undefined ? [] : [JSON.stringify(end)])].join(' | ');
}
const clients = { 'useChat 6': [chat, '6'], 'useChat 7': [chat, '7'], 'AG-UI 1': [agui, '1'], 'AG-UI 0': [agui, '0'] };
await Promise.all(Object.entries(clients).map(async ([name, [walk, version]]) => {
	all[name + ' quiet'] = await walk(version, 'clerk', 'slow quiet-' + name.replace(' ', '-'));
	all[name + ' prose'] = await walk(version, 'finder', 'prose');
}));
console.log(JSON.stringify(all));
