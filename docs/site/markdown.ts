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
