import type { BinaryOperator, CallNode, ListNode, MapNode, Node } from './ast.ts'
import { SyntaxProblem } from './diagnostic.ts'
import { tokenize } from './lexer.ts'
import type { Token } from './lexer.ts'
import { isInt64 } from './values.ts'

/** Maximum length of expressions in the API (`CELExpression`). */
const MAX_SOURCE_LENGTH = 16_384
/** Maximum depth of the syntax tree: the compiler and the evaluation recurse. */
const MAX_DEPTH = 250

const RESERVED = new Set('as break const continue else false for function if import in let loop namespace null package return true var void while'.split(' '))
/** Reserved words that cannot be field names; the others can. */
const NO_FIELD = new Set(['false', 'in', 'null', 'true'])
const PRECEDENCE: Readonly<Record<string, number>> = { '<': 1, '<=': 1, '>': 1, '>=': 1, '==': 1, '!=': 1, in: 1, '+': 2, '-': 2, '*': 3, '/': 3, '%': 3 }

/** Parses an expression. Throws SyntaxProblem with the offset. */
export function parse(source: string): Node {
  if (source.length > MAX_SOURCE_LENGTH) throw new SyntaxProblem(`the expression has ${source.length} characters, at most ${MAX_SOURCE_LENGTH} are allowed`, 0)
  return new Parser(tokenize(source)).parseAll()
}

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0
  #nesting = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  parseAll(): Node {
    const node = this.#parseExpression()
    if (this.#token.kind !== 'end') this.#fail(`unexpected ${describe(this.#token)}`)
    return node
  }

  get #token(): Token {
    const token = this.#tokens[Math.min(this.#at, this.#tokens.length - 1)]
    if (token === undefined) throw new SyntaxProblem('unexpected end', 0)
    return token
  }

  #fail(message: string, at = this.#token.start): never {
    throw new SyntaxProblem(message, at)
  }

  #peek(operator: string): boolean {
    return this.#token.kind === 'operator' && this.#token.text === operator
  }

  #accept(operator: string): boolean {
    if (!this.#peek(operator)) return false
    this.#at++
    return true
  }

  #expect(operator: string): void {
    if (!this.#accept(operator)) this.#fail(`expected "${operator}" instead of ${describe(this.#token)}`)
  }

  #parseExpression(): Node {
    if (++this.#nesting > MAX_DEPTH) this.#failDepth(this.#token.start)
    const condition = this.#parseLogic('||', 'or', () => this.#parseLogic('&&', 'and', () => this.#parseBinary(1)))
    const at = this.#token.start
    let node = condition
    if (this.#accept('?')) {
      const consequence = this.#parseLogic('||', 'or', () => this.#parseLogic('&&', 'and', () => this.#parseBinary(1)))
      this.#expect(':')
      const otherwise = this.#parseExpression()
      node = this.#finish({ kind: 'conditional', condition, consequence, otherwise, at, depth: depthOf(condition, consequence, otherwise) })
    }
    this.#nesting--
    return node
  }

  #parseLogic(operator: string, kind: 'and' | 'or', parseOperand: () => Node): Node {
    const first = parseOperand()
    if (!this.#peek(operator)) return first
    const at = this.#token.start
    const operands = [first]
    while (this.#accept(operator)) operands.push(parseOperand())
    return this.#finish({ kind, operands, at, depth: depthOf(...operands) })
  }

  #parseBinary(least: number): Node {
    let left = this.#parseUnary()
    for (;;) {
      const { kind, text, start } = this.#token
      const precedence = kind === 'operator' || text === 'in' ? PRECEDENCE[text] : undefined
      if (precedence === undefined || precedence < least || kind === 'quotedIdent') return left
      this.#at++
      const right = this.#parseBinary(precedence + 1)
      left = this.#finish({ kind: 'binary', operator: text as BinaryOperator, left, right, at: start, depth: depthOf(left, right) })
    }
  }

  #parseUnary(): Node {
    const { start: at } = this.#token
    let count = 0
    const operator = this.#peek('!') ? '!' : this.#peek('-') ? '-' : undefined
    if (operator === undefined) return this.#parseMember(this.#parsePrimary(1n))
    while (this.#accept(operator)) count++
    if (operator === '-' && this.#token.kind === 'literal' && isNumber(this.#token.value)) {
      return this.#parseMember(this.#parsePrimary(count % 2 === 1 ? -1n : 1n))
    }
    const operand = this.#parseMember(this.#parsePrimary(1n))
    // Pairs of minus signs cancel out (cel-go). One pair of `!!x` remains, because it requires a bool.
    const times = operator === '-' ? count % 2 : 2 - (count % 2)
    let node = operand
    for (let i = 0; i < times; i++) node = this.#finish({ kind: 'unary', operator, operand: node, at, depth: depthOf(node) })
    return node
  }

  #parseMember(operand: Node): Node {
    let node = operand
    for (;;) {
      const { start: at } = this.#token
      if (this.#accept('.')) node = this.#parseSelection(node)
      else if (this.#accept('[')) {
        const isOptional = this.#accept('?')
        const index = this.#parseExpression()
        this.#expect(']')
        node = this.#finish({ kind: 'index', operand: node, index, isOptional, at, depth: depthOf(node, index) })
      } else if (this.#peek('{') && isTypeName(node)) node = this.#parseStruct(node)
      else return node
    }
  }

  /** Parses what follows the dot: a field or a method call. */
  #parseSelection(operand: Node): Node {
    const isOptional = this.#accept('?')
    const { kind, text, start: at } = this.#token
    if (kind !== 'ident' && kind !== 'quotedIdent') this.#fail(`expected a field name instead of ${describe(this.#token)}`)
    if (kind === 'ident' && NO_FIELD.has(text)) this.#fail(`"${text}" is not a field name; write ["${text}"]`)
    this.#at++
    if (kind === 'ident' && !isOptional && this.#accept('(')) return this.#parseCall(text, operand, at)
    return this.#finish({ kind: 'select', operand, field: text, isOptional, at, depth: depthOf(operand) })
  }

  /** Parses what follows the opening parenthesis. */
  #parseCall(name: string, target: Node | undefined, at: number): CallNode {
    const args: Node[] = []
    while (!this.#peek(')')) {
      args.push(this.#parseExpression())
      if (!this.#accept(',')) break
      if (this.#peek(')')) this.#fail('expected an argument instead of ")"')
    }
    this.#expect(')')
    return this.#finish({ kind: 'call', name, target, args, at, depth: depthOf(...(target ? [target] : []), ...args) })
  }

  #parsePrimary(sign: bigint): Node {
    const token = this.#token
    const { kind, text, start: at } = token
    if (kind === 'literal') {
      this.#at++
      return { kind: 'literal', value: this.#signed(token, sign), at, depth: 1 }
    }
    if (this.#accept('(')) {
      const node = this.#parseExpression()
      this.#expect(')')
      return node
    }
    if (this.#accept('[')) return this.#parseList(at)
    if (this.#accept('{')) return this.#parseMap(at)
    const isAbsolute = this.#accept('.')
    return this.#parseName(isAbsolute, at, text)
  }

  #parseName(isAbsolute: boolean, at: number, first: string): Node {
    const { kind, text } = this.#token
    if (kind !== 'ident') this.#fail(`expected an expression instead of ${describe(this.#token)}`)
    if (RESERVED.has(text) && !['true', 'false', 'null'].includes(text)) this.#fail(`"${text}" is a reserved word`)
    this.#at++
    if (!isAbsolute && (first === 'true' || first === 'false')) return { kind: 'literal', value: first === 'true', at, depth: 1 }
    if (!isAbsolute && first === 'null') return { kind: 'literal', value: null, at, depth: 1 }
    if (this.#accept('(')) return this.#parseCall(text, undefined, at)
    return { kind: 'ident', name: text, isAbsolute, at, depth: 1 }
  }

  #signed(token: Token, sign: bigint): string | bigint | number | Uint8Array | Exclude<Token['value'], undefined> {
    const { value = '', start, text } = token
    if (typeof value === 'number') return sign < 0n ? -value : value
    if (typeof value !== 'bigint') {
      if (sign < 0n) this.#fail(`${text} is unsigned and has no negative`, start)
      return value
    }
    if (!isInt64(sign * value)) this.#fail(`${text} does not fit into 64 bits`, start)
    return sign * value
  }

  #parseList(at: number): Node {
    const elements: ListNode['elements'][number][] = []
    while (!this.#peek(']')) {
      const isOptional = this.#accept('?')
      elements.push({ isOptional, value: this.#parseExpression() })
      if (!this.#accept(',')) break
    }
    this.#expect(']')
    return this.#finish({ kind: 'list', elements, at, depth: depthOf(...elements.map(({ value }) => value)) })
  }

  #parseMap(at: number): Node {
    const entries: MapNode['entries'][number][] = []
    while (!this.#peek('}')) {
      const isOptional = this.#accept('?')
      const key = this.#parseExpression()
      this.#expect(':')
      entries.push({ isOptional, key, value: this.#parseExpression() })
      if (!this.#accept(',')) break
    }
    this.#expect('}')
    return this.#finish({ kind: 'map', entries, at, depth: depthOf(...entries.flatMap(({ key, value }) => [key, value])) })
  }

  #parseStruct(type: Node): Node {
    let name = ''
    for (let at = type; at.kind === 'select' || at.kind === 'ident';) {
      if (at.kind === 'ident') {
        name = at.name + name
        break
      }
      name = `.${at.field}${name}`
      at = at.operand
    }
    this.#expect('{')
    while (!this.#peek('}')) {
      this.#accept('?')
      if (this.#token.kind !== 'ident' && this.#token.kind !== 'quotedIdent') this.#fail(`expected a field name instead of ${describe(this.#token)}`)
      this.#at++
      this.#expect(':')
      this.#parseExpression()
      if (!this.#accept(',')) break
    }
    this.#expect('}')
    return { kind: 'struct', name, at: type.at, depth: 1 }
  }

  #finish<N extends Node>(node: N): N {
    if (node.depth > MAX_DEPTH) this.#failDepth(node.at)
    return node
  }

  #failDepth(at: number): never {
    throw new SyntaxProblem(`the expression nests deeper than ${MAX_DEPTH} levels`, at)
  }
}

function depthOf(...children: readonly Node[]): number {
  let deepest = 0
  for (const { depth } of children) deepest = Math.max(deepest, depth)
  return deepest + 1
}

function isNumber(value: Token['value']): boolean {
  return typeof value === 'bigint' || typeof value === 'number'
}

function isTypeName(node: Node): boolean {
  return node.kind === 'ident' || (node.kind === 'select' && !node.isOptional && isTypeName(node.operand))
}

function describe({ kind, text }: Token): string {
  if (kind === 'end') return 'the end'
  return text === '' ? 'a string' : JSON.stringify(text)
}
