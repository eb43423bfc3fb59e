import { parseSync, Visitor } from 'oxc-parser'

/** A title of a test as written; placeholders (`%s`, `${…}`) are kept as `%s`. */
export interface Title {
  readonly text: string
  readonly line: number
}

const testFunctions = new Set(['test', 'it'])

/** Titles of the tests of one file that are written as literals. */
export function findTitles(path: string, source: string): readonly Title[] {
  const titles: Title[] = []
  new Visitor({
    CallExpression({ callee, arguments: [first], start }) {
      if (!isTest(callee) || first === undefined) return
      const text = textOf(first)
      if (text !== undefined) titles.push({ text, line: source.slice(0, start).split('\n').length })
    },
  }).visit(parseSync(path, source).program)
  return titles
}

interface Node {
  readonly type: string
}

/** `test`, `test.skip`, and what `test.each(rows)` returns. */
function isTest(callee: Node): boolean {
  if ('name' in callee) return testFunctions.has(String(callee.name))
  if (callee.type === 'MemberExpression' && 'object' in callee && 'property' in callee) {
    const property = callee.property as { readonly name?: string }
    return isTest(callee.object as Node) && property.name !== 'each'
  }
  if (callee.type !== 'CallExpression' || !('callee' in callee)) return false
  const inner = callee.callee as Node
  return inner.type === 'MemberExpression' && 'object' in inner && isTest(inner.object as Node)
}

function textOf(node: Node): string | undefined {
  if (node.type === 'Literal' && 'value' in node && typeof node.value === 'string') return node.value.replaceAll(/%[a-zA-Z#]/g, '%s')
  if (node.type !== 'TemplateLiteral' || !('quasis' in node)) return undefined
  return (node.quasis as { readonly value: { readonly cooked: string | null } }[]).map(({ value }) => value.cooked ?? '').join('%s')
}

/** Words that begin a fragment, which cannot be understood without the line before it. */
const fragment = /^(to|of|in|on|at|with|without|and|but|or|so|by|for|from|than|as|what|whatever|who|whoever|whose|which|gets|is|are|has|does)\b/i

/** What is wrong with a title; undefined if it can be read as a sentence. */
export function checkTitle(text: string): string | undefined {
  const words = text.trim().split(/\s+/)
  if (/^%s$/.test(text.trim())) return undefined
  if (words.length < 3) return 'has fewer than three words; write a sentence'
  if (fragment.test(text)) return `begins with "${words[0]}"; begin with the subject`
  return /[.;]$/.test(text) ? 'ends with punctuation' : undefined
}
