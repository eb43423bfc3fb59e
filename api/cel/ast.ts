import type { Uint } from './values.ts'

/** A node of the syntax tree. Macros are calls; the compiler expands them. */
export type Node =
  | LiteralNode
  | IdentNode
  | SelectNode
  | IndexNode
  | CallNode
  | LogicNode
  | ConditionalNode
  | UnaryNode
  | BinaryNode
  | ListNode
  | MapNode
  | StructNode

interface Positioned {
  /** Offset into the source that messages point at. */
  readonly at: number
  /** Height of the tree below and including this node. */
  readonly depth: number
}

interface LiteralNode extends Positioned {
  readonly kind: 'literal'
  /** Integers are bigint, doubles number. */
  readonly value: null | boolean | string | bigint | number | Uint | Uint8Array
}

export interface IdentNode extends Positioned {
  readonly kind: 'ident'
  readonly name: string
  /** Written `.name`: variables of macros do not hide it. */
  readonly isAbsolute: boolean
}

export interface SelectNode extends Positioned {
  readonly kind: 'select'
  readonly operand: Node
  readonly field: string
  /** Written `a.?b`. */
  readonly isOptional: boolean
}

export interface IndexNode extends Positioned {
  readonly kind: 'index'
  readonly operand: Node
  readonly index: Node
  /** Written `a[?k]`. */
  readonly isOptional: boolean
}

export interface CallNode extends Positioned {
  readonly kind: 'call'
  readonly name: string
  readonly target: Node | undefined
  readonly args: readonly Node[]
}

/** `a && b && c` is one node, so that long rules do not nest. */
export interface LogicNode extends Positioned {
  readonly kind: 'and' | 'or'
  readonly operands: readonly Node[]
}

export interface ConditionalNode extends Positioned {
  readonly kind: 'conditional'
  readonly condition: Node
  readonly consequence: Node
  readonly otherwise: Node
}

export interface UnaryNode extends Positioned {
  readonly kind: 'unary'
  readonly operator: '!' | '-'
  readonly operand: Node
}

export type BinaryOperator = '+' | '-' | '*' | '/' | '%' | '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in'

export interface BinaryNode extends Positioned {
  readonly kind: 'binary'
  readonly operator: BinaryOperator
  readonly left: Node
  readonly right: Node
}

export interface ListNode extends Positioned {
  readonly kind: 'list'
  readonly elements: readonly { readonly value: Node; readonly isOptional: boolean }[]
}

export interface MapNode extends Positioned {
  readonly kind: 'map'
  readonly entries: readonly { readonly key: Node; readonly value: Node; readonly isOptional: boolean }[]
}

/** `Name{…}`: message types do not exist here; parsed only for a good error message. */
interface StructNode extends Positioned {
  readonly kind: 'struct'
  readonly name: string
}

/** `['request', 'headers']` for `request.headers`: an identifier followed by plain selections. Undefined for other nodes. */
export function chainOf(node: Node): string[] | undefined {
  const names: string[] = []
  let at = node
  while (at.kind === 'select' && !at.isOptional) {
    names.push(at.field)
    at = at.operand
  }
  if (at.kind !== 'ident') return undefined
  names.push(at.name)
  return names.reverse()
}
