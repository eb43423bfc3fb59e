import { useState } from 'preact/hooks'
import type { EditResult, EditState } from '#api/management/edits.ts'
import { Badge, Panel } from '../../ui/panel.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty } from '../../ui/states.tsx'
import { ChangeButtons, type Change } from './change.tsx'
import { Written } from './field.tsx'

type List = EditState['keys'][number]
type Action = 'create' | 'rotate' | 'revoke'

interface KeysProps {
  readonly state: EditState
  readonly onWritten: () => void
}

const NAME = /^[-._a-zA-Z0-9]{1,253}$/

/** API keys of clients. A new key is shown once; the file has its digest. */
export function Keys({ state, onWritten }: KeysProps) {
  if (state.keys.length === 0)
    return (
      <Panel title="API keys">
        <Empty title="No policy checks API keys">
          <span>
            <code>apiKeyAuthentication</code> of a policy names the Secret of the keys.
          </span>
        </Empty>
      </Panel>
    )
  return (
    <>
      {state.keys.map((list) => (
        <KeyList key={list.id} list={list} state={state} onWritten={onWritten} />
      ))}
    </>
  )
}

function KeyList({ list, state, onWritten }: KeysProps & { readonly list: List }) {
  const [chosen, setChosen] = useState<{ readonly name: string; readonly action: Action }>()
  const [result, setResult] = useState<EditResult>()
  const toggle = (name: string, action: Action): void => setChosen(chosen?.name === name && chosen.action === action ? undefined : { name, action })
  return (
    <Panel
      title="API keys"
      aside={
        <>
          <code>{list.name}</code>
          <button type="button" class="quiet" aria-expanded={chosen?.action === 'create'} onClick={() => toggle('', 'create')}>
            Create a key
          </button>
        </>
      }
    >
      {result !== undefined ? (
        <div class="body stack">
          {result.keys.map(({ name, key }) => (
            <NewKey key={name} name={name} value={key} />
          ))}
          <Written target={state.target} result={result} onDone={onWritten} />
        </div>
      ) : (
        chosen !== undefined && (
          <div class="body stack">
            {chosen.action === 'create' ? (
              <Create list={list} state={state} onResult={setResult} />
            ) : (
              <>
                <p>
                  {chosen.action === 'rotate' ? 'A new key replaces that of ' : 'Requests with the key of '}
                  <code>{chosen.name}</code>
                  {chosen.action === 'rotate' ? '; requests with the old one are rejected.' : ' are rejected.'}
                </p>
                <ChangeButtons
                  key={`${chosen.action} ${chosen.name}`}
                  state={state}
                  change={{ key: { list: list.id, name: chosen.name, action: chosen.action } }}
                  onResult={setResult}
                />
              </>
            )}
          </div>
        )
      )}
      {list.entries.length === 0 ? (
        <Empty title="No keys: requests are rejected" />
      ) : (
        <Scroll label={`Keys of ${list.name}`}>
          <table class="keys">
            <thead>
              <tr>
                <th>Name</th>
                <th>State</th>
                <th>Expires</th>
                <th>Metadata</th>
                <th>Change</th>
              </tr>
            </thead>
            <tbody>
              {list.entries.map(({ name, state: validity, expires, metadata }) => (
                <tr key={name}>
                  <td class="mono">{name}</td>
                  <td>
                    <Badge tone={validity === 'valid' ? 'good' : validity === 'expired' ? 'warn' : 'bad'}>{validity}</Badge>
                  </td>
                  <td>{expires?.slice(0, 10) ?? 'never'}</td>
                  <td class="mono wrap">{describe(metadata)}</td>
                  <td>
                    <div class="row">
                      {(['rotate', 'revoke'] as const).map((action) => (
                        <button
                          key={action}
                          type="button"
                          class="quiet"
                          aria-label={`${action === 'rotate' ? 'Rotate' : 'Revoke'} ${name}`}
                          aria-expanded={chosen?.name === name && chosen.action === action}
                          onClick={() => toggle(name, action)}
                        >
                          {action === 'rotate' ? 'Rotate' : 'Revoke'}
                        </button>
                      ))}
                    </div>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Panel>
  )
}

const describe = (metadata: Readonly<Record<string, unknown>>): string =>
  Object.entries(metadata)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ') || '–'

function Create({ list, state, onResult }: { readonly list: List; readonly state: EditState; readonly onResult: (result: EditResult) => void }) {
  const [name, setName] = useState('')
  const [days, setDays] = useState('90')
  const [metadata, setMetadata] = useState('')
  const problem =
    name !== '' && !NAME.test(name) ? 'A name has letters, digits, ., _ and -.' : list.entries.some((entry) => entry.name === name) ? 'The name is used.' : ''
  const [expires] = useState(Date.now())
  const change: Change | undefined =
    name === '' || problem !== ''
      ? undefined
      : {
          key: {
            list: list.id,
            name,
            action: 'create',
            ...(Number(days) > 0 && { expires: new Date(expires + Number(days) * 86_400_000).toISOString() }),
            ...(metadata.trim() !== '' && { metadata: readPairs(metadata) }),
          },
        }
  return (
    <>
      <div class="row">
        <label class="grow">
          Name
          <input class="mono" value={name} autocomplete="off" onInput={({ currentTarget }) => setName(currentTarget.value)} />
        </label>
        <label>
          Days until it expires; 0: never
          <input type="number" min="0" max="3650" value={days} onInput={({ currentTarget }) => setDays(currentTarget.value)} />
        </label>
        <label class="grow">
          Metadata
          <input class="mono" placeholder="team=search" value={metadata} onInput={({ currentTarget }) => setMetadata(currentTarget.value)} />
        </label>
      </div>
      {problem !== '' && (
        <p class="is-bad" role="alert">
          {problem}
        </p>
      )}
      <ChangeButtons state={state} change={change} onResult={onResult} />
    </>
  )
}

/** `team=search tier=1` as an object. */
const readPairs = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .trim()
      .split(/[\s,]+/)
      .map((pair) => [pair.split('=', 1)[0] ?? '', pair.includes('=') ? pair.slice(pair.indexOf('=') + 1) : 'true']),
  )

function NewKey({ name, value }: { readonly name: string; readonly value: string }) {
  const [isCopied, setCopied] = useState(false)
  return (
    <div class="notice is-warn new-key" role="status">
      <strong>The key of {name}, shown only now</strong>
      <div class="row">
        <code class="grow">{value}</code>
        <button
          type="button"
          onClick={() =>
            void navigator.clipboard.writeText(value).then(
              () => setCopied(true),
              () => undefined,
            )
          }
        >
          {isCopied ? 'Copied' : 'Copy'}
        </button>
      </div>
    </div>
  )
}
