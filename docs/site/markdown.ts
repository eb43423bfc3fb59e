import { existsSync, readFileSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import type { MarkdownRenderer } from 'vitepress'

const docs = join(import.meta.dirname, '..')

/** Title of a page: its first heading. */
export function readTitle(file: string): string {
  const [, title] = /^# (.+)$/m.exec(readFileSync(join(docs, file), 'utf8')) ?? []
  if (title === undefined) throw new Error(`docs/${file} has no title; begin it with "# "`)
  return title
}

/** A line of a `console` block. */
interface ConsoleLine {
  /** Part of a command, not of an output. */
  readonly isCommand: boolean
  /** Begins with `$ `. */
  readonly hasPrompt: boolean
}

/** Tells commands from their output. A command goes on after a backslash, and to the end of a here-document. */
export function findCommands(text: string): readonly ConsoleLine[] {
  /** The line that ends the here-document, or a backslash after one. */
  let until: string | undefined
  return text.split('\n').map((line) => {
    const hasPrompt = until === undefined && line.startsWith('$ ')
    const isCommand = hasPrompt || until !== undefined
    if (hasPrompt || until === '\\') until = line.endsWith('\\') ? '\\' : /<<'?(\w+)'?/.exec(line)?.[1]
    else if (line === until) until = undefined
    return { isCommand, hasPrompt }
  })
}

/** An element of highlighted code, as Shiki makes it. */
interface CodeNode {
  readonly type: string
  readonly tagName?: string
  readonly properties?: Record<string, unknown>
  value?: string
  children?: CodeNode[]
}

/** Class of what the button of a block does not copy. */
const NOT_COPIED = 'vp-copy-ignore'

const span = (classes: string, children: CodeNode[]): CodeNode => ({ type: 'element', tagName: 'span', properties: { class: classes }, children })

/** Makes the button of a `console` block copy its commands: prompts and output, with the line feeds around them, are shown only. */
export function markOutput(code: CodeNode, text: string): void {
  const lines = findCommands(text.replace(/\n$/, ''))
  const lastCommand = lines.findLastIndex(({ isCommand }) => isCommand)
  let index = -1
  code.children = (code.children ?? []).map((node) => {
    if (node.type === 'element') index += 1
    const { isCommand = false, hasPrompt = false } = lines[index] ?? {}
    if (node.type !== 'element') return isCommand && index < lastCommand ? node : span(NOT_COPIED, [node])
    if (!isCommand) return span(NOT_COPIED, [node])
    if (hasPrompt) {
      removeStart(node, 2)
      node.children?.unshift(span(`${NOT_COPIED} prompt`, [{ type: 'text', value: '$ ' }]))
    }
    return node
  })
}

/** Removes the first characters of the text of an element. Returns how many are left to remove. */
function removeStart(node: CodeNode, count: number): number {
  if (node.value !== undefined) {
    const removed = Math.min(count, node.value.length)
    node.value = node.value.slice(removed)
    return count - removed
  }
  return (node.children ?? []).reduce((left, child) => (left === 0 ? 0 : removeStart(child, left)), count)
}

/**
 * Makes the pages, which are written for GitHub, work on the site: links to files outside `docs` lead to the repository, links to directories to their README,
 * comments are removed, braces are no templates, and `mermaid` blocks become diagrams.
 */
export function adaptMarkdown(md: MarkdownRenderer, repository: string): void {
  md.core.ruler.before('normalize', 'comments', (state) => {
    state.src = withoutComments(state.src)
  })
  md.core.ruler.push('links', (state) => {
    const { relativePath } = state.env as { relativePath: string }
    for (const { children } of state.tokens) {
      for (const token of children ?? []) {
        const href = token.type === 'link_open' ? token.attrGet('href') : null
        if (href !== null) token.attrSet('href', toSiteLink(href, relativePath, repository))
      }
    }
  })
  const { text, fence } = md.renderer.rules
  md.renderer.rules.text = (...args) => (text?.(...args) ?? '').replaceAll('{{', '&#123;&#123;')
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const { info = '', content = '' } = tokens[index] ?? {}
    if (info.trim() === 'mermaid') return `<Diagram code="${encodeURIComponent(content)}" />`
    return fence?.(tokens, index, ...rest) ?? ''
  }
}

/** Removes lines that are HTML comments, except in code. Keeps the number of lines. */
function withoutComments(source: string): string {
  let fence = ''
  const lines = source.split('\n').map((line) => {
    const marker = /^ *(```+|~~~+)/.exec(line)?.[1] ?? ''
    if (fence === '') fence = marker
    else if (marker.startsWith(fence)) fence = ''
    return fence === '' && /^<!--.*-->$/.test(line) ? '' : line
  })
  return lines.join('\n')
}

/** The address on the site of a link in `page`, a path relative to `docs`. */
function toSiteLink(href: string, page: string, repository: string): string {
  if (/^(?:[a-z][a-z0-9+.-]*:|#|\/)/i.test(href)) return href
  const [path = '', anchor] = href.split('#', 2)
  const target = posix.normalize(posix.join(posix.dirname(page), decodeURIComponent(path))).replace(/\/$/, '')
  const hash = anchor === undefined ? '' : `#${anchor}`
  const file = isDirectory(target) && existsSync(join(docs, target, 'README.md')) ? `${target}/README.md` : target
  if (!target.startsWith('..') && file.endsWith('.md')) return `/${file.replace(/(?:README|index)?\.md$/, '')}${hash}`
  const inRepository = posix.normalize(posix.join('docs', target))
  return `${repository}/${isDirectory(target) ? 'tree' : 'blob'}/main/${inRepository}${hash}`
}

const isDirectory = (path: string): boolean => statSync(join(docs, path), { throwIfNoEntry: false })?.isDirectory() === true

/** Anchors of headings, as GitHub makes them. */
export function slugify(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-')
}
