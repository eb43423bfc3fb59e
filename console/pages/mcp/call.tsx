import { useState } from 'preact/hooks'
import { formatMs } from '../../ui/format.ts'
import { Badge, Panel } from '../../ui/panel.tsx'
import { ErrorBox } from '../../ui/states.tsx'
import { ValueText } from '../../ui/value.tsx'
import { readArguments, type Values } from './arguments.ts'
import type { McpClient, Reply } from './client.ts'
import { SchemaForm } from './form.tsx'
import type { Item, Schema } from './item.ts'

export type Kind = 'tool' | 'prompt' | 'resource'

/** A form that calls a tool, gets a prompt or reads a resource, and shows the response with the decisions of the gateway. */
export function Call({ kind, item, client }: { readonly kind: Kind; readonly item: Item; readonly client: McpClient }) {
  const [values, setValues] = useState<Values>({})
  const [reply, setReply] = useState<Reply>()
  const [error, setError] = useState<string>()
  const schema = schemaOf(kind, item)
  const call = async (): Promise<void> => {
    const args = readArguments(schema, values)
    if (kind === 'resource') return setReply(await client.request('resources/read', { uri: item.uri }))
    setReply(await client.request(kind === 'tool' ? 'tools/call' : 'prompts/get', { name: item.name, arguments: args }))
  }
  const submit = (event: Event): void => {
    event.preventDefault()
    setError(undefined)
    call().catch((failure: Error) => setError(failure.message))
  }
  return (
    <Panel title={item.name ?? item.uri ?? ''} aside={kind}>
      <form class="body stack" onSubmit={submit}>
        {item.description !== undefined && <p class="description">{item.description}</p>}
        {kind !== 'resource' && <SchemaForm schema={schema} values={values} onChange={setValues} />}
        <div class="row">
          <button type="submit" class="primary">
            {kind === 'tool' ? 'Call' : kind === 'prompt' ? 'Get' : 'Read'}
          </button>
        </div>
        {error !== undefined && <ErrorBox title="The call was not sent" message={error} />}
        {reply !== undefined && <ReplyView reply={reply} />}
      </form>
    </Panel>
  )
}

function schemaOf(kind: Kind, item: Item): Schema {
  if (kind === 'tool') return item.inputSchema ?? {}
  const list = item.arguments ?? []
  return {
    properties: Object.fromEntries(list.map(({ name, description }) => [name, { type: 'string', description }])),
    required: list.filter(({ required }) => required).map(({ name }) => name),
  }
}

function ReplyView({ reply: { message, result } }: { readonly reply: Reply }) {
  const { response, error, trace } = result
  const isFailure = message?.error !== undefined || message?.result?.['isError'] === true || message === undefined
  const steps = (trace?.steps ?? []).filter(({ kind }) => kind === 'policy' || kind === 'expression' || kind === 'item')
  return (
    <div class="stack" role="status">
      <div class="row">
        <Badge tone={(response?.status ?? 500) < 400 ? 'good' : 'bad'}>{response?.status ?? 'no response'}</Badge>
        <Badge tone={isFailure ? 'bad' : 'good'}>{isFailure ? 'error' : 'result'}</Badge>
        <span class="muted">{formatMs(response?.durationMs)}</span>
      </div>
      <ValueText class="text value">
        {message === undefined ? (error ?? response?.body) : JSON.stringify(message.error ?? message.result, undefined, 2)}
      </ValueText>
      {steps.length > 0 && (
        <>
          <h3>Decisions of the gateway</h3>
          <ol class="steps">
            {steps.map(({ atMs, kind, name, detail }, index) => (
              <li key={index}>
                <span class="muted">{formatMs(atMs)}</span> <Badge>{kind}</Badge> <span class="mono">{name}</span>{' '}
                <span class="muted">
                  {Object.entries(detail ?? {})
                    .map(([key, value]) => `${key}: ${value}`)
                    .join(', ')}
                </span>
              </li>
            ))}
          </ol>
        </>
      )}
    </div>
  )
}
