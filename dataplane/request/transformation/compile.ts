import type { HeaderTransformation, Transform } from '#gen/config/types.ts'
import { Cidr, Duration, evalStored, Ip, Timestamp, Uint, type Phase, type Program } from '#api/cel/index.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { compileExpression } from '../expression/program.ts'
import { toFieldValue } from '../expression/message.ts'
import type { ExchangeView } from '../expression/view.ts'
import type { HeaderList } from '../../http/headers.ts'
import { isFieldValue, isToken } from '../../http/syntax.ts'
import { framingFields } from '../exchange/fields.ts'
import { variables } from '../exchange/variables.ts'

/** A header or pseudo header in lower case, and the expression of its value. */
interface ComputedField {
  readonly name: string
  readonly isPseudo: boolean
  readonly program: Program
}

/** One side of a compiled transformation. */
export interface CompiledTransform {
  readonly metadata: readonly (readonly [key: string, program: Program])[]
  readonly add: readonly ComputedField[]
  readonly set: readonly ComputedField[]
  readonly remove: readonly string[]
  readonly body: Program | undefined
  readonly setsMethod: boolean
  /** Names of the computed headers, which describe a new body. */
  readonly computed: ReadonlySet<string>
}

/** Compiles the expressions of one side. Expressions that do not compile fail when they are evaluated. */
export function compileTransform({ metadata = {}, add = [], set = [], remove = [], body }: Transform, phase: Phase): CompiledTransform {
  const fields = [...add, ...set]
  return {
    metadata: Object.entries(metadata).map(([key, expression]) => [key, compileExpression(expression, phase)] as const),
    add: compileFields(add, phase),
    set: compileFields(set, phase),
    remove: remove.map((name) => name.toLowerCase()).filter(isChangeable),
    body: body === undefined ? undefined : compileExpression(body, phase),
    setsMethod: fields.some(({ name }) => name.toLowerCase() === ':method'),
    computed: new Set(fields.map(({ name }) => name.toLowerCase())),
  }
}

function compileFields(fields: readonly HeaderTransformation[], phase: Phase): ComputedField[] {
  return fields.flatMap(({ name: rawName, value }) => {
    const lower = rawName.toLowerCase()
    // The host of a request is not stored in the headers.
    const name = lower === 'host' && phase === 'request' ? ':authority' : lower
    const isPseudo = name.startsWith(':')
    return isPseudo || isChangeable(name) ? [{ name, isPseudo, program: compileExpression(value, phase) }] : []
  })
}

/** Whether a transformation may change the header. Framing headers belong to the codec; invalid names are ignored. */
function isChangeable(name: string): boolean {
  return isToken(name) && !framingFields.has(name)
}

/** All expressions of a transformation. */
export function programsOf(transform: CompiledTransform | undefined): Program[] {
  if (transform === undefined) return []
  const { metadata, add, set, body } = transform
  return [...metadata.map(([, program]) => program), ...[...add, ...set].map(({ program }) => program), ...(body === undefined ? [] : [body])]
}

/** Step 1: computes metadata for later expressions, later steps and logs. Failed values are left out. */
export function computeMetadata(exchange: Exchange, { metadata }: CompiledTransform, view: ExchangeView): void {
  if (metadata.length === 0) return
  const values: Record<string, unknown> = Object.assign(Object.create(null) as Record<string, unknown>, variables.metadata.get(exchange))
  for (const [key, program] of metadata) {
    const value = evalStored(program, view)
    if (value === undefined) continue
    values[key] = value
    variables.metadata.set(exchange, values)
  }
}

/**
 * Steps 2 to 4: add, set, remove. A header whose value fails is removed, so that a client's value is never used in place of a computed one.
 * `setPseudo` sets pseudo headers and ignores invalid values.
 */
export function computeFields(
  headers: HeaderList,
  { add, set, remove }: CompiledTransform,
  view: ExchangeView,
  setPseudo: (name: string, value: string) => void,
): void {
  const apply = ({ name, isPseudo, program }: ComputedField, isAdded: boolean): void => {
    const value = evalField(program, view)
    if (isPseudo) {
      if (value !== undefined) setPseudo(name, value)
      return
    }
    if (value === undefined) headers.remove(name)
    else if (isAdded) headers.append(name, value)
    else headers.set(name, value)
  }
  for (const field of add) apply(field, true)
  for (const field of set) apply(field, false)
  for (const name of remove) headers.remove(name)
}

/**
 * Evaluates a field value: text, bytes, and other scalars as text, such as numbers and addresses. Undefined for null, lists, maps, secrets and for
 * values that would end the line.
 */
function evalField(program: Program, view: ExchangeView): string | undefined {
  const value = program.eval(view)
  const text = value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : typeof value === 'string' ? toFieldValue(value) : toPlainText(value)
  const trimmed = text?.replace(/^[ \t]+|[ \t]+$/g, '')
  return trimmed !== undefined && isFieldValue(trimmed) ? trimmed : undefined
}

function toPlainText(value: unknown): string | undefined {
  if (value instanceof Uint) return value.value.toString()
  if (value instanceof Ip || value instanceof Cidr || value instanceof Timestamp || value instanceof Duration) return value.toString()
  return typeof value === 'bigint' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}
