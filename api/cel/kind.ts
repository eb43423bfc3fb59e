import type { Node } from './ast.ts'

/** Type of the result of an expression that does not fail, if its source determines it; otherwise `dyn`. */
export type ResultKind = 'bool' | 'string' | 'number' | 'list' | 'map' | 'dyn'

const kinds: ReadonlyMap<string, ResultKind> = new Map([
  ...named(
    'bool',
    'has exists all exists_one existsOne startsWith endsWith contains matches isIP isCIDR containsIP containsCIDR hasValue bool isNaN isInf isFinite',
  ),
  ...named('string', 'string toJson to_json base64Encode lowerAscii upperAscii trim join format uuid regexReplace charAt substring'),
  ...named('number', 'int uint double size indexOf lastIndexOf random'),
  ...named('list', 'filter map transformList split sort sortBy distinct'),
  ...named('map', 'transformMap mapValues filterKeys merge variables'),
])

function named(kind: ResultKind, names: string): [string, ResultKind][] {
  return names.split(' ').map((name) => [name, kind])
}

/** Type of the result of a node. */
export function kindOf(node: Node): ResultKind {
  switch (node.kind) {
    case 'and':
    case 'or':
      return 'bool'
    case 'unary':
      return node.operator === '!' ? 'bool' : 'dyn'
    case 'binary':
      return /^[<>=!i]/.test(node.operator) ? 'bool' : 'dyn'
    case 'literal':
      return kindOfLiteral(node.value)
    case 'list':
      return 'list'
    case 'map':
      return 'map'
    case 'conditional': {
      const kind = kindOf(node.consequence)
      return kind === kindOf(node.otherwise) ? kind : 'dyn'
    }
    case 'call':
      return kindOfCall(node.name, node.target)
    case 'ident':
    case 'select':
    case 'index':
    case 'struct':
      return 'dyn'
  }
}

/** `join` and `split` return other types for header views, so the result of these methods is not known. */
function kindOfCall(name: string, target: Node | undefined): ResultKind {
  return target !== undefined && (name === 'join' || name === 'split') ? 'dyn' : (kinds.get(name) ?? 'dyn')
}

function kindOfLiteral(value: unknown): ResultKind {
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'string'
  return typeof value === 'bigint' || typeof value === 'number' ? 'number' : 'dyn'
}
