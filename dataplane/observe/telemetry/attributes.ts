import { evalHost, Flattened, type Program } from '#api/cel/index.ts'
import type { LogTracingAttributes } from '#gen/config/types.ts'
import { compileExpression } from '../../request/expression/program.ts'
import type { FieldSink } from './field-sink.ts'

/** Changes of a policy to the default fields of a record. */
export interface AttributeChanges {
  /** Names of default fields to omit: removed ones and those replaced by added ones. */
  readonly hidden: ReadonlySet<string>
  readonly added: readonly { readonly name: string; readonly program: Program }[]
}

/** Compiles attribute settings; undefined: no changes. */
export function compileAttributes(attributes: LogTracingAttributes | undefined): AttributeChanges | undefined {
  if (attributes === undefined) return undefined
  const added = (attributes.add ?? []).map(({ name, expression }) => ({ name, program: compileExpression(expression, 'log') }))
  return { hidden: new Set([...(attributes.remove ?? []), ...added.map(({ name }) => name)]), added }
}

/** Applies the changes of a policy to a record. Evaluates expressions once, even if the record is written several times. */
export function changeFields(changes: AttributeChanges, context: object, write: (sink: FieldSink) => void): (sink: FieldSink) => void {
  const values = evaluateAdded(changes, context)
  return (sink) => {
    write(hideFields(sink, changes.hidden))
    for (const [name, value] of values) sink.added(name, value)
  }
}

function hideFields(sink: FieldSink, hidden: ReadonlySet<string>): FieldSink {
  return {
    plain: (name, value) => void (hidden.has(name) || sink.plain(name, value)),
    foreign: (name, value) => void (hidden.has(name) || sink.foreign(name, value)),
    quoted: (name, value) => void (hidden.has(name) || sink.quoted(name, value)),
    added: (name, value) => sink.added(name, value),
  }
}

/** Evaluates the added fields. Omits null and errors; maps and lists become JSON. */
function evaluateAdded(changes: AttributeChanges, context: object): [string, string | number | boolean][] {
  const values: [string, string | number | boolean][] = []
  for (const { name, program } of changes.added) {
    const value = evalHost(program, context)
    if (value instanceof Flattened) for (const [field, inner] of value.expand(name)) add(values, field, inner)
    else add(values, name, value)
  }
  return values
}

function add(values: [string, string | number | boolean][], name: string, value: unknown): void {
  if (value === undefined || value === null) return
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') values.push([name, value])
  else if (value instanceof Uint8Array) values.push([name, Buffer.from(value).toString('base64')])
  else values.push([name, JSON.stringify(value)])
}
