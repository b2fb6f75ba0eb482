// What Vercel's AI SDK makes of pawl serve, whose models are agents: cmd/pawl's test reads it.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, Output, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const [, , root, apiKey] = process.argv;
const baseURL = root + '/v1';
const openai = createOpenAI({ baseURL, apiKey });
const compatible = createOpenAICompatible({ name: 'pawl', baseURL, apiKey, includeUsage: true, supportsStructuredOutputs: true });
const messages = createAnthropic({ baseURL, apiKey });
globalThis.AI_SDK_LOG_WARNINGS = false; // stdout has the findings alone
const all = {};
const waiting = []; // for requests that fail
let invoice = 0; // two providers send equal requests: a repetition within a minute has one run

async function thrown(f) {
	try {
		return { nothing: await f() };
	} catch (err) {
		const e = err.lastError ?? err;
		return { name: e.name ?? null, status: e.statusCode ?? null, says: /no agent|waits for a decision/.exec(e.message ?? JSON.stringify(e))?.[0] ?? String(e.message ?? JSON.stringify(e)) };
	}
}

for (const [api, model] of Object.entries({ chat: openai.chat, responses: openai.responses, compatible, messages })) {
	for (const stream of [false, true]) {
		const mode = (stream ? 'streamed ' : 'whole ') + api + ' ';
		let ran = 0;
		const tools = {
			locate: tool({ description: 'Where the user is.', inputSchema: z.object({ at: z.string().optional() }), execute: async () => (ran++, 'Rome') }),
		};
		const ask = async (more) => {
			const options = { model: model('clerk'), ...more };
			if (!stream) return await generateText(options);
			let failed = null, pieces = 0;
			const r = streamText({ ...options, onError: ({ error }) => (failed = error) });
			for await (const part of r.fullStream) if (part.type === 'text-delta') pieces++;
			if (failed) throw failed;
			return { text: await r.text, finishReason: await r.finishReason, steps: await r.steps, usage: await r.totalUsage, response: await r.response, output: more.output && (await r.output), pieces };
		};
		const read = (r) => ({ text: r.text, finish: r.finishReason, steps: r.steps.length, usage: (r.totalUsage ?? r.usage).totalTokens > 0 });
		all[mode + 'text'] = read(await ask({ system: 'Be short.', prompt: 'hello there' }));
		all[mode + 'own tool'] = read(await ask({ prompt: 'look Oslo' }));
		const messages = [{ role: 'user', content: 'locate me' }];
		const first = await ask({ messages, tools, stopWhen: stepCountIs(4) });
		all[mode + 'steps'] = { ...read(first), ran };
		messages.push(...first.response.messages, { role: 'user', content: 'hello again' });
		all[mode + 'next'] = read(await ask({ messages, tools, stopWhen: stepCountIs(4) }));
		messages.push({ role: 'assistant', content: 'What else?' }, { role: 'user', content: 'locate me' });
		all[mode + 'steps again'] = { ...read(await ask({ messages, tools, stopWhen: stepCountIs(4) })), ran };
		all[mode + 'object'] = (await ask({ prompt: 'object', output: Output.object({ schema: z.object({ city: z.string() }) }) })).output;
		all[mode + 'prose'] = (await ask({ prompt: 'prose', output: Output.object({ schema: z.object({ city: z.string() }) }) })).output;
		all[mode + 'parallel tools'] = read(await ask({ prompt: 'both Oslo' }));
		all[mode + 'no model'] = await thrown(() => ask({ model: model('nobody'), prompt: 'x' }));
		const n = ++invoice;
		const failing = { 'needs a yes': 'pay ', 'fails': 'fail ', 'fails after a write': 'refund ' };
		// ai repeats a stream that begins with an error after 2 s and 4 s. The other requests continue meanwhile.
		for (const [name, word] of Object.entries(failing)) waiting.push(thrown(() => ask({ prompt: word + n })).then((e) => (all[mode + name] = e)));
		if (stream) all[mode + 'pieces'] = (await ask({ prompt: 'hello ' + 'a word and another '.repeat(50) })).pieces > 3;
	}
}
await Promise.all(waiting);
console.log(JSON.stringify(all));
