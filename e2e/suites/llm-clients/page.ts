import { clients, features, type Cell, type ClientResults, type Feature } from './clients.ts'

const titles: Readonly<Record<Feature, string>> = {
  text: 'text',
  stream: 'stream',
  tools: 'parallel tools',
  image: 'image',
  thinking: 'thinking over three turns',
  schema: 'structured output',
  error: 'error',
  cancel: 'cancelled stream',
}

const marks: Readonly<Record<Cell['outcome'], string>> = { works: 'works', rejected: '400', notApplicable: '–', notOffered: 'not offered', fails: 'fails' }

/** The page of clients and providers, from results.json. */
export function renderPage(results: Readonly<Record<string, ClientResults>>): string {
  const sections = Object.entries(results).map(([name, result]) => renderClient(name, result))
  return `# Clients and providers

<!-- Generated from e2e/suites/llm-clients/results.json by \`UPDATE=1 make e2e PARTS=llm-clients\`. Do not edit. -->

SDKs and agents as clients of the gateway, each with each provider. The providers are mocks that reject what the real ones reject: bodies are checked against the types of the vendors' own SDKs, and against the rules of their references and of
public reports. [e2e/suites/llm-clients](../../e2e/suites/llm-clients/README.md) describes them. The models are those of 2026: GPT-5.5, Claude Sonnet 4.5, Gemini 3 Pro, and Qwen 3 on a server that is compatible with OpenAI's Chat Completions API.

| cell | meaning |
|---|---|
| works | the client gets the response that it asks for, buffered and as a stream |
| 400 | the gateway or the provider rejects the request; the reason is below the table |
| – | the client, or the API that it uses, does not have the feature |
| not offered | the gateway does not have the API of the client |

${features.map((feature) => `- **${titles[feature]}**: ${meanings[feature]}`).join('\n')}

${sections.join('\n\n')}
`
}

const meanings: Readonly<Record<Feature, string>> = {
  text: 'a system prompt, a question, the token limit, and usage.',
  stream: 'the same in pieces, with usage at the end.',
  tools: 'two calls in one response, both results in the next request.',
  image: 'a PNG in the prompt.',
  thinking: 'reasoning, a call, reasoning, a call, the answer, and a further question. The thoughts, and their signatures, are sent back.',
  schema: "a response by a JSON schema, parsed by the client's own helper.",
  error: 'status, message and `retry-after` of the provider are the error of the client, for streams too.',
  cancel: "the client leaves a stream, and the provider's connection is closed.",
}

function renderClient(name: string, { version, providers }: ClientResults): string {
  const names = Object.keys(providers)
  const reasons = new Map<string, number>()
  const cellOf = ({ outcome, reason }: Cell): string => {
    if (reason === undefined) return marks[outcome]
    const number = reasons.get(reason) ?? reasons.size + 1
    reasons.set(reason, number)
    return `${marks[outcome]} (${number})`
  }
  const rows = features.map((feature) => {
    const cells = names.map((provider) => {
      const cell = providers[provider]?.[feature]
      return cell === undefined ? '' : cellOf(cell)
    })
    return `| ${titles[feature]} | ${cells.join(' | ')} |`
  })
  const notes = [...reasons].map(([reason, number]) => `${number}. ${reason.replaceAll('|', '\\|').replaceAll('<', '&lt;')}`)
  return [
    `## ${name}`,
    '',
    `Version ${version}, ${clients[name]?.format ?? ''}.`,
    '',
    `| | ${names.join(' | ')} |`,
    `|---|${names.map(() => '---|').join('')}`,
    ...rows,
    ...(notes.length > 0 ? ['', ...notes] : []),
  ].join('\n')
}
