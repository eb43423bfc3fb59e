import { CelError } from '../error.ts'
import type { CelErrorCode } from '../error.ts'
import type { Environment } from '../environment.ts'
import type { Node } from '../ast.ts'
import { load, store } from '../values.ts'
import type { Stored, Value } from '../values.ts'

/** State of one evaluation. */
export interface Frame {
  /** Its members are the variables of the host. */
  readonly root: object
  /** Values of the variables of macros. */
  readonly slots: Stored[]
}

/** Evaluates a node to a value, or a CelError. */
export type Evaluate = (frame: Frame) => Value

/** A compiled node. Both closures return a CelError if evaluation fails. */
export interface Code {
  readonly evaluate: Evaluate
  /** The result as a stored value: cheaper for data of the host, and sufficient for comparisons. */
  readonly stored: (frame: Frame) => Stored
  readonly literal?: { readonly value: Value }
  /** Set if the node is only a variable of the host, or a member of one: its names. */
  readonly path?: readonly string[]
}

/** Code of a node whose result is a stored value. */
export function fromStored(stored: (frame: Frame) => Stored): Code {
  return { stored, evaluate: (frame) => load(stored(frame)) }
}

/** Code of a node that computes a value. */
export function fromLive(evaluate: Evaluate): Code {
  return { evaluate, stored: (frame) => store(evaluate(frame)) }
}

/** Code of a constant, or of an error that is known at compile time. */
export function fromLiteral(value: Value): Code {
  const stored = store(value)
  return { literal: { value }, evaluate: () => value, stored: () => stored }
}

/** Variables of macros that are visible at a node, innermost first. */
export interface Scope {
  readonly name: string
  readonly slot: number
  readonly outer: Scope | undefined
}

/** Compiles a node where the variables of `scope` are visible. */
export type Compile = (node: Node, scope: Scope | undefined) => Code

/** State of the compilation of one expression. */
export class Compilation {
  readonly environment: Environment
  readonly problems: { offset: number; message: string }[] = []
  readonly reads = new Set<string>()
  slots = 0
  /** Compiles any node; the files of this directory compile child nodes through it. */
  readonly compile: Compile

  constructor(environment: Environment, dispatch: (compilation: Compilation, node: Node, scope: Scope | undefined) => Code) {
    this.environment = environment
    this.compile = (node, scope) => dispatch(this, node, scope)
  }

  /** Records a problem. The node evaluates to the returned error. */
  report(node: Node, code: CelErrorCode, message: string): CelError {
    this.problems.push({ offset: node.at, message })
    return this.error(node, code, message)
  }

  error(node: Node, code: CelErrorCode, message: string): CelError {
    return new CelError(code, message, node.at)
  }

  bind(name: string, outer: Scope | undefined): Scope {
    return { name, slot: this.slots++, outer }
  }

  /** Records a member that the expression reads, with its parents: `request`, `request.body`. */
  recordRead(chain: readonly string[]): void {
    for (let i = 1; i <= chain.length; i++) this.reads.add(chain.slice(0, i).join('.'))
  }
}

/** The innermost variable of that name. */
export function findVariable(name: string, scope: Scope | undefined): Scope | undefined {
  for (let at = scope; at; at = at.outer) if (at.name === name) return at
  return undefined
}
