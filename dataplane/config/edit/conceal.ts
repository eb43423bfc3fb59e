import { REDACTED } from '#api/names.ts'
import { findSecrets, isSecretPath } from '#api/secret-fields.ts'
import { Lexer, isPair, isScalar, isSeq, parseDocument, visit } from 'yaml'
import type { Path } from './text.ts'

/** Shorter values are replaced only where they are written as a credential: elsewhere they are words. */
const MIN_FOUND = 6

/** A credential that another text lacks. */
const NEW = '<redacted, new>'

/** Replaces the credentials of a config file, wherever they are in the text. With `known`, those that are not among them are marked as new. */
export function concealText(text: string, known?: ReadonlySet<string>): string {
  const document = parseDocument(text, { prettyErrors: false, logLevel: 'silent' })
  const root: unknown = document.toJS({ maxAliasCount: 1000 })
  const spans: { readonly start: number; readonly end: number; readonly value: string }[] = []
  visit(document, {
    Scalar(key, node, parents) {
      const { range, value } = node
      if (key === 'key' || !range || typeof value !== 'string' || isMask(value) || !isSecretPath(root, pathOf([...parents, node]))) return
      spans.push({ start: range[0], end: range[0] + text.slice(range[0], range[1]).trimEnd().length, value })
    },
  })
  const markOf = (value: string): string => (known === undefined || known.has(value) ? REDACTED : NEW)
  let concealed = text
  for (const { start, end, value } of spans.toSorted((a, b) => b.start - a.start)) concealed = concealed.slice(0, start) + markOf(value) + concealed.slice(end)
  const secrets = findSecrets(root).filter((secret) => secret.length >= MIN_FOUND && !isMask(secret))
  for (const secret of secrets.toSorted((a, b) => b.length - a.length)) concealed = concealed.replaceAll(secret, () => markOf(secret))
  return concealed
}

/** The credentials of a text. */
export function credentialsOf(text: string): Set<string> {
  const root: unknown = parseDocument(text, { prettyErrors: false, logLevel: 'silent' }).toJS({ maxAliasCount: 1000 })
  const found = new Set(findSecrets(root))
  const walk = (at: unknown, path: Path): void => {
    if (typeof at === 'string' && isSecretPath(root, path)) found.add(at)
    if (typeof at === 'object' && at !== null) for (const [name, value] of Object.entries(at)) walk(value, [...path, Array.isArray(at) ? Number(name) : name])
  }
  walk(root, [])
  return found
}

/** Placeholders are masked by characters for private use: their names may be shown. */
const isMask = (text: string): boolean => /^[\uE000-\uF8FF]+$/.test(text)

/** A text without the words of comments, in which users may have put credentials aside; `isNew` comments stay. */
export function withoutComments(text: string, isNew: (comment: string) => boolean = () => false): string {
  let before = ''
  return Array.from(new Lexer().lex(text), (lexeme) => {
    const isComment = lexeme.startsWith('#') && before !== '\u001F'
    before = lexeme
    // Marks of documents and scalars, which are not in the text.
    if (lexeme === '\u0002' || lexeme === '\u0018' || lexeme === '\u001F') return ''
    return isComment && !isNew(lexeme) ? '#' : lexeme
  }).join('')
}

/** The path of the last of nested nodes. */
const pathOf = (nodes: readonly unknown[]): Path =>
  nodes.flatMap((node, index): Path => {
    if (isPair(node)) return [String(isScalar(node.key) ? node.key.value : node.key)]
    return isSeq(node) && index + 1 < nodes.length ? [node.items.indexOf(nodes[index + 1])] : []
  })
