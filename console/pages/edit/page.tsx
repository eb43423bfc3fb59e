import { useState } from 'preact/hooks'
import type { EditState } from '#api/management/edits.ts'
import { useResource } from '../../api/resource.ts'
import { PageHead, Panel } from '../../ui/panel.tsx'
import { Empty, ErrorBox, Loading } from '../../ui/states.tsx'
import { FieldEditor } from './field.tsx'
import { Keys } from './keys.tsx'

type Field = EditState['fields'][number]

const SECTIONS = [
  ['budgets', 'Budgets', 'limits of requests, tokens and dollars'],
  ['models', 'Models', 'targets, rules, weights and fallbacks'],
  ['guards', 'Guardrails', 'checks of prompts and responses'],
  ['tools', 'Tools', 'MCP tools that clients see, and who may call them'],
] as const

export function EditPage() {
  // Each click on "Read again" reads the file anew.
  const [turn, setTurn] = useState(0)
  return <Config key={turn} onReload={() => setTurn(turn + 1)} />
}

function Config({ onReload }: { readonly onReload: () => void }) {
  const { value, error } = useResource<EditState>('/api/v1/edits')
  return (
    <>
      <PageHead title="Edit">
        {value?.enabled === true && <span class="muted mono">{value.target}</span>}
        <span class="grow" />
        <button type="button" onClick={onReload}>
          Read again
        </button>
      </PageHead>
      {error !== undefined && <ErrorBox title="The config cannot be read" message={error.message} />}
      {value === undefined ? error === undefined && <Loading /> : <State state={value} onWritten={onReload} />}
    </>
  )
}

function State({ state, onWritten }: { readonly state: EditState; readonly onWritten: () => void }) {
  if (!state.enabled)
    return (
      <Panel title="Changes">
        <Empty title="Nothing can be changed here">
          <span>{state.reason}</span>
        </Empty>
      </Panel>
    )
  if (state.problems.length > 0)
    return (
      <div class="notice is-error" role="alert">
        <strong>{state.target} is invalid; correct the file first</strong>
        {state.problems.map((problem) => (
          <p key={problem}>{problem}</p>
        ))}
      </div>
    )
  return (
    <>
      <p class="muted hint">A change shows its difference first, and is written with a click. The file keeps its comments, and a copy of it is made.</p>
      <Keys state={state} onWritten={onWritten} />
      {SECTIONS.map(([section, title, about]) => {
        const fields = state.fields.filter((field) => field.section === section)
        return fields.length > 0 && <Fields key={section} title={title} about={about} fields={fields} state={state} onWritten={onWritten} />
      })}
    </>
  )
}

interface FieldsProps {
  readonly title: string
  readonly about: string
  readonly fields: readonly Field[]
  readonly state: EditState
  readonly onWritten: () => void
}

function Fields({ title, about, fields, state, onWritten }: FieldsProps) {
  const [opened, setOpened] = useState<string>()
  return (
    <Panel title={title} aside={about}>
      <ul class="fields">
        {fields.map((field) => {
          const name = nameOf(field)
          return (
            <li key={name}>
              <div class="row">
                <code class="grow">{name}</code>
                {field.text === null && <span class="muted">not set</span>}
                <button type="button" class="quiet" aria-expanded={opened === name} onClick={() => setOpened(opened === name ? undefined : name)}>
                  {opened === name ? 'Close' : field.text === null ? 'Set' : 'Edit'}
                </button>
              </div>
              {opened === name && <FieldEditor name={name} field={field} state={state} onWritten={onWritten} />}
            </li>
          )
        })}
      </ul>
    </Panel>
  )
}

const nameOf = ({ object, path }: Field): string => [...(object === null ? [] : [object]), path.map(String).join('.')].join(' ')
