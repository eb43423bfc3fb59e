const sensitiveName =
  /^(?:authorization|proxy-?authorization|cookie|set-?cookie|password|passwd|passphrase|private-?key|(?:x-)?api-?keys?|access-?keys?|secret-?keys?|secret-?access-?key|client-?secret|session-?(?:token|key)|(?:access|refresh|id|raw|bearer)-?token|token|users|credentials?)$/i

/** True for names of fields that hold credentials, in any of the usual spellings. */
export function isSensitiveName(name: string): boolean {
  return sensitiveName.test(name.replaceAll('_', '-'))
}

/** Names of headers whose values are credentials or sessions; what is left of a number of tokens, and keys of retries, are not. */
const sensitiveHeader =
  /^(?!idempotency-key$|.*ratelimit)(?:.*(?:token|secret|passw(?:or)?d|passphrase|credential|authorization|assertion|session[-_]?id|[-_](?:api)?keys?$)|(?:set-)?cookie2?$|(?:api)?keys?$)/i

/** True for names of headers, environment variables and options that hold credentials. */
export const isSecretHeader = (name: string): boolean => sensitiveHeader.test(name) || isSensitiveName(name)

/** Fields with credentials that their names do not reveal: parent -> field. */
const inlineCredentials: Readonly<Record<string, string>> = { auth: 'key', jwks: 'inline', tls: 'key', https: 'key', cardSigning: 'key' }
/** Objects whose values may be credentials: environments and the entries of Secrets. */
const credentialMaps: ReadonlySet<string> = new Set(['env', 'data'])
/** Objects with headers by name. */
const headerMaps: ReadonlySet<string> = new Set(['addRequestHeaders'])
/** Sections whose values of headers are expressions. */
const expressions: ReadonlySet<string> = new Set(['transformation', 'addRequestHeaders'])

/** True for a field of a config that holds a credential, by its name and that of the object around it. */
export const isSecretField = (name: string, parent: string): boolean =>
  isSensitiveName(name) || inlineCredentials[parent] === name || credentialMaps.has(parent) || (headerMaps.has(parent) && isSecretHeader(name))

/** True if an object is a header, or the like, that holds a credential. */
const isSecretEntry = (value: object): value is { readonly name: string; readonly value: unknown } =>
  'name' in value && typeof value.name === 'string' && 'value' in value && isSecretHeader(value.name)

/** Whether the value at a path of a config is a credential, or a part of one. */
export function isSecretPath(root: unknown, path: readonly (string | number)[]): boolean {
  // Keys of clients have names of users around them.
  if (path[0] === 'keys' && path[2] === 'key') return true
  let [at, name, parent]: [unknown, string, string] = [root, '', '']
  for (const part of path) {
    const isEntry = typeof at === 'object' && at !== null && isSecretEntry(at)
    if (typeof part === 'string') [name, parent] = [part, name]
    if ((isEntry && part === 'value') || (typeof part === 'string' && isSecretField(part, parent))) return true
    at = typeof at === 'object' && at !== null ? (at as Readonly<Record<string | number, unknown>>)[part] : undefined
  }
  // After the program, words of a command may be credentials.
  return isCommand(name)
}

/** The credentials that are written into a config, whether it is valid or not. */
export function findSecrets(config: unknown): string[] {
  const found: string[] = []
  collect(found, config, '', '', false)
  return found
}

/** `name` is the field of the value, `parent` that around it. */
function collect(found: string[], value: unknown, name: string, parent: string, isExpression: boolean): void {
  if (typeof value === 'string') collectText(found, value, name, parent, isExpression)
  else if (Array.isArray(value)) {
    if (isCommand(name)) found.push(...secretsOfCommand(value))
    for (const item of value) collect(found, item, name, parent, isExpression)
  } else if (typeof value === 'object' && value !== null) {
    const isInner = isExpression || expressions.has(name)
    const isEntry = isSecretEntry(value)
    for (const field in value) {
      const inner = (value as Readonly<Record<string, unknown>>)[field]
      // Keys of clients have names of users around them.
      if (name === 'keys' && typeof inner === 'object' && inner !== null && 'key' in inner && typeof inner.key === 'string') found.push(inner.key)
      if (!isEntry || field !== 'value' || typeof inner !== 'string') collect(found, inner, field, name, isInner)
      else if (isInner) found.push(...literalsOf(inner))
      else found.push(withoutScheme(inner))
    }
  }
}

function collectText(found: string[], text: string, name: string, parent: string, isExpression: boolean): void {
  const password = text.includes('@') ? /^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s:]*:([^/?#\s]+)@/i.exec(text)?.[1] : undefined
  if (password !== undefined) found.push(password, decode(password))
  else if (isExpression) {
    if (isSecretHeader(name)) found.push(...literalsOf(text))
  } else if ((parent === 'tls' || parent === 'https') && !text.includes('-----BEGIN')) {
    // The name of a file.
  } else if (parent === 'env' ? isSecretHeader(name) : isSecretField(name, parent)) {
    found.push(withoutScheme(text))
    // A line of htpasswd.
    if (name === 'users') found.push(text.slice(text.indexOf(':') + 1))
  }
}

const withoutScheme = (text: string): string => text.replace(/^(?:bearer|basic) +/i, '')

/** Texts of an expression. */
const literalsOf = (expression: string): string[] =>
  Array.from(expression.matchAll(/"([^"]+)"|'([^']+)'/g), ([, double, single]) => withoutScheme(double ?? single ?? ''))

const isCommand = (name: string): boolean => name === 'command' || name === 'args'

/** Values of options: `--token x`, `--token=x`, `TOKEN=x`. */
function secretsOfCommand(words: readonly unknown[]): string[] {
  const found: string[] = []
  let before = ''
  for (const word of words) {
    if (typeof word !== 'string') continue
    const [, option = '', value] = /^-{0,2}([\w-]+)=([\s\S]+)$/.exec(word) ?? []
    if (value !== undefined && isSecretHeader(option)) found.push(value)
    else if (/^--?\w/.test(before) && isSecretHeader(before.replace(/^-+/, '')) && !word.startsWith('-')) found.push(word)
    before = word
  }
  return found
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** What the parser of YAML says, without the text that it quotes: a credential may begin with `*`, `!` or `|`. */
export const describeYamlError = (message: string): string =>
  message.replace(
    /^(Unresolved alias|Unresolved tag|Could not resolve tag|Block scalar header includes extra characters|Unexpected .* token in YAML stream|Unknown directive)[^]*$/,
    '$1; quote a value that begins with * ! | > % or ]',
  )
