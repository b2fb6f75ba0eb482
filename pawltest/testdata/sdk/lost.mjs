// What the clients of OpenAI's APIs do when their connections to pawl serve break, at their default settings, or, if argv[4] is
// quiet, when a tool takes long: the tests of cmd/pawl and server read it. A page of Chromium executes it
// too, with the arguments in globalThis.args.
const page = typeof process === 'undefined';
const [root, token, kind] = page ? globalThis.args : process.argv.slice(2);
const baseURL = root + '/v1';

// A client has ask(text, stream, signal), which returns the text of the answer.
const clients = {
	async openai(api) {
		const { default: OpenAI } = await import(page ? '/modules/openai/index.mjs' : 'openai');
		const client = new OpenAI({ apiKey: token, baseURL, dangerouslyAllowBrowser: page });
		return async (text, stream, signal) => {
			const at = api === 'chat' ? client.chat.completions : client.responses;
			const res = await at.create({ model: 'clerk', ...(api === 'chat' ? { messages: [{ role: 'user', content: text }] } : { input: text }), stream }, { signal });
			if (!stream) return api === 'chat' ? res.choices[0].message.content : res.output_text;
			let said = '', over = false;
			for await (const e of res) {
				said += (api === 'chat' ? e.choices[0].delta.content : e.type === 'response.output_text.delta' && e.delta) || '';
				over ||= e.choices?.[0].finish_reason ?? e.type === 'response.completed';
			}
			return over ? said : 'no end'; // an aborted stream ends without an error
		};
	},
	async anthropic() {
		const { default: Anthropic } = await import('@anthropic-ai/sdk');
		const client = new Anthropic({ apiKey: token, baseURL: root });
		return async (text, stream, signal) => {
			const body = { model: 'clerk', max_tokens: 1000, messages: [{ role: 'user', content: text }] };
			if (!stream) return (await client.messages.create(body, { signal })).content[0].text;
			let said = '', over = false;
			for await (const e of await client.messages.create({ ...body, stream }, { signal })) {
				said += e.delta?.text ?? '';
				over ||= e.type === 'message_stop';
			}
			return over ? said : 'no end'; // an aborted stream ends without an error
		};
	},
	async ai(api) {
		const { generateText, streamText } = await import('ai');
		const { createOpenAI } = await import('@ai-sdk/openai');
		const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
		const { createAnthropic } = await import('@ai-sdk/anthropic');
		const providers = {
			compatible: createOpenAICompatible({ name: 'pawl', baseURL, apiKey: token }),
			messages: createAnthropic({ baseURL, apiKey: token }),
			...createOpenAI({ baseURL, apiKey: token }),
		};
		const model = providers[api]('clerk');
		return async (prompt, stream, abortSignal) => {
			if (!stream) return (await generateText({ model, prompt, abortSignal })).text;
			let said = '', over = false;
			for await (const part of streamText({ model, prompt, abortSignal, onError: () => {} }).fullStream) {
				if (part.type === 'error') throw part.error;
				if (part.type === 'text-delta') said += part.text;
				over ||= part.type === 'finish';
			}
			return over ? said : 'no end';
		};
	},
	async langchain(api) {
		const { ChatOpenAI } = await import('@langchain/openai');
		const model = new ChatOpenAI({ model: 'clerk', apiKey: token, configuration: { baseURL }, useResponsesApi: api === 'responses' });
		return async (text, stream, signal) => {
			if (!stream) return (await model.invoke(text, { signal })).text;
			let reply;
			for await (const chunk of await model.stream(text, { signal })) reply = reply ? reply.concat(chunk) : chunk;
			return reply.response_metadata.finish_reason ?? reply.response_metadata.status ? reply.text : 'no end';
		};
	},
	async agents(api) {
		const { Agent, OpenAIProvider, Runner, setTracingDisabled } = await import('@openai/agents');
		setTracingDisabled(true);
		const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey: token, baseURL, useResponses: api === 'responses' }) });
		return async (text, stream, signal) => {
			const result = await runner.run(new Agent({ name: 'page', model: 'clerk' }), text, { stream, signal });
			if (stream) {
				for await (const _ of result);
				if (result.error) throw result.error;
			}
			return result.finalOutput ?? 'no end';
		};
	},
};

globalThis.AI_SDK_LOG_WARNINGS = false; // stdout has the findings alone
const all = {};
const thrown = (p) => p.then((text) => (text === 'no end' ? text : 'answer ' + text), () => 'error');
async function walk(name, api) {
	const ask = await clients[name](api);
	const of = `${page ? 'page' : name}-${api}`;
	if (kind === 'quiet') {
		all[of] = await thrown(ask('slow quiet-' + of, true));
		return;
	}
	const stop = new AbortController();
	fetch(`${root}/edge/held?name=stop-${of}`).then(() => stop.abort());
	const ends = await Promise.all([
		thrown(ask('slow lose-whole-' + of, false)),
		thrown(ask('slow lose-stream-' + of, true)),
		thrown(ask('slow stop-' + of, true, stop.signal)),
	]);
	for (const [i, scene] of ['whole', 'stream', 'stop'].entries()) all[`${scene} ${of}`] = ends[i];
}
const walks = page ? [['openai', 'chat']]
	: ['openai', 'ai', 'langchain', 'agents'].flatMap((name) => ['chat', 'responses'].map((api) => [name, api])).concat([['ai', 'compatible'], ['ai', 'messages'], ['anthropic', 'messages']]);
await Promise.all(walks.map((w) => walk(...w)));
if (page) globalThis.all = all;
else console.log(JSON.stringify(all));
