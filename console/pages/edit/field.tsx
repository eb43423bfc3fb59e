import { useState } from 'preact/hooks'
import type { EditResult, EditState } from '#api/management/edits.ts'
import { ChangeButtons, type Change } from './change.tsx'

interface FieldEditorProps {
  readonly name: string
  readonly field: EditState['fields'][number]
  readonly state: EditState
  readonly onWritten: () => void
}

/** What a field that is not set yet may look like. */
const samples: Readonly<Record<string, string>> = {
  budgets: '- name: daily\n  limits: [{ requests: 1000, window: Day }]',
  to: '- { model: NAME, weight: 1 }',
  rules: '- to: [{ model: NAME }]',
  fallback: '- on: [RateLimit]\n  to: [{ model: NAME }]',
  promptGuard: 'request:\n  - regex: { builtins: [Ssn], action: Mask }',
  tools: 'include: ["*"]',
  authorization: 'action: Deny\npolicy:\n  matchExpressions:\n    - mcp.tool.name == "delete"',
}

/** A field as YAML. */
export function FieldEditor({ name, field, state, onWritten }: FieldEditorProps) {
  const [text, setText] = useState(field.text ?? samples[String(field.path.at(-1))] ?? '')
  const [isRemoved, setRemoved] = useState(false)
  const [result, setResult] = useState<EditResult>()
  const { object, path } = field
  const change: Change | undefined = isRemoved ? { object, path, text: null } : text.trim() === '' || text === field.text ? undefined : { object, path, text }
  if (result !== undefined) return <Written target={state.target} result={result} onDone={onWritten} />
  return (
    <div class="stack edited">
      <label>
        YAML of {name}
        <textarea
          rows={Math.min(20, Math.max(4, text.split('\n').length + 1))}
          spellcheck={false}
          value={text}
          disabled={isRemoved}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      {field.text !== null && (
        <label class="check">
          <input type="checkbox" checked={isRemoved} onChange={({ currentTarget }) => setRemoved(currentTarget.checked)} />
          Remove the field
        </label>
      )}
      <ChangeButtons state={state} change={change} onResult={setResult} />
    </div>
  )
}

/** What was written. The page reads the file again after it was seen. */
export function Written({ target, result: { backup }, onDone }: { readonly target: string; readonly result: EditResult; readonly onDone: () => void }) {
  return (
    <div class="notice is-good" role="status">
      <strong>{target} is written</strong>
      {backup !== null && (
        <p>
          The file before is <code>{backup}</code>.
        </p>
      )}
      <button type="button" onClick={onDone}>
        Continue
      </button>
    </div>
  )
}
