import { isNumber, textOf, type Values } from './arguments.ts'
import type { Schema } from './item.ts'

/** A form for the arguments of a tool. Members that are not simple are edited as JSON. */
export function SchemaForm({ schema, values, onChange }: { readonly schema: Schema; readonly values: Values; readonly onChange: (values: Values) => void }) {
  const fields = Object.entries(schema.properties ?? {})
  const required = Array.isArray(schema.required) ? (schema.required as unknown[]) : []
  if (fields.length === 0) return <p class="muted">It has no arguments.</p>
  return (
    <>
      {fields.map(([name, field]) => (
        <label key={name}>
          <span>
            <span class="mono">{name}</span>
            {required.includes(name) ? ' (required)' : ''} {typeof field.description === 'string' ? field.description : ''}
          </span>
          <Field field={field} value={values[name] ?? ''} onInput={(value) => onChange({ ...values, [name]: value })} />
        </label>
      ))}
    </>
  )
}

function Field({ field, value, onInput }: { readonly field: Schema; readonly value: string; readonly onInput: (value: string) => void }) {
  const choices = Array.isArray(field.enum) ? (field.enum as unknown[]) : field.type === 'boolean' ? [true, false] : undefined
  if (choices !== undefined)
    return (
      <select value={value} onChange={(event) => onInput(event.currentTarget.value)}>
        <option value="">not set</option>
        {choices.map((choice) => (
          <option key={JSON.stringify(choice)} value={textOf(choice)}>
            {textOf(choice)}
          </option>
        ))}
      </select>
    )
  const isComplex = field.type === 'object' || field.type === 'array'
  if (isComplex)
    return <textarea rows={3} value={value} placeholder={field.type === 'array' ? '[]' : '{}'} onInput={(event) => onInput(event.currentTarget.value)} />
  return <input value={value} inputMode={isNumber(field) ? 'decimal' : 'text'} onInput={(event) => onInput(event.currentTarget.value)} />
}
