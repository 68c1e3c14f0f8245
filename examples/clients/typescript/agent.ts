// An agent in TypeScript without a package: it answers the lines of its standard input, and precis looks to its context.
import { createInterface } from "node:readline";

type Json = Record<string, any>;
const env = process.env;
const conversations = (env.PRECIS_URL ?? "http://127.0.0.1:8700") + "/v1/conversations";
const key: Record<string, string> = env.PRECIS_KEY ? { Authorization: `Bearer ${env.PRECIS_KEY}` } : {};
const vendor = (env.ANTHROPIC_BASE_URL ?? "https://api.anthropic.com") + "/v1/messages";
const vendorKey = { "X-Api-Key": env.ANTHROPIC_API_KEY ?? "", "Anthropic-Version": "2023-06-01" };
const model = env.MODEL ?? "claude-sonnet-4-5";
const system = "You are a helpful assistant.";
const tools: Json[] = [];

function post(url: string, body: Json, headers: Record<string, string>): Promise<Response> {
  return fetch(url, { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) });
}

async function precis(path: string, body: Json): Promise<Json> {
  const answer = await post(conversations + path, body, key);
  if (!answer.ok) throw new Error(`precis: ${await answer.text()}`);
  return await answer.json();
}

const talk = "/" + (await precis("", { format: "anthropic", model: { vendor: "anthropic", name: model }, system, tools })).id;
for await (const line of createInterface({ input: process.stdin })) {
  await precis(`${talk}/messages`, { messages: [{ role: "user", content: line.trim() }] });
  for (;;) {
    const reply = await precis(`${talk}/replies`, {});
    const answer = await post(vendor, { model, max_tokens: 1024, system, tools, messages: reply.context.messages }, vendorKey);
    const end = `${talk}/replies/${reply.reply}/end`;
    if (answer.ok) {
      const said: Json = await answer.json();
      await precis(end, { messages: [{ role: "assistant", content: said.content }], usage: said.usage });
      console.log(said.content[0].text);
      break;
    }
    const error = { status: answer.status, body: await answer.text() };
    const ended = await precis(end, { error });
    if (!ended.run) throw new Error(`the model answered ${error.status}: ${error.body}`);
    await precis(`${talk}/compactions`, { wait_seconds: 300 }); // it overflowed: wait for the compaction, then ask again
  }
}
