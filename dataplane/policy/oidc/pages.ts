import type { ErrorFormat } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'

/** Headers of pages: nothing is stored, nothing is loaded. */
export const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
} as const

const escape = (text: string): string => text.replaceAll(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)

/** A page of one sentence and one link. */
export function page(title: string, text: string, link: { readonly href: string; readonly text: string } | undefined, head = ''): string {
  const anchor = link === undefined ? '' : `<p><a href="${escape(link.href)}">${escape(link.text)}</a></p>`
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">${head}<title>${escape(title)}</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem;color-scheme:light dark}</style></head><body><h1>${escape(title)}</h1><p>${escape(text)}</p>${anchor}</body></html>\n`
}

/** Continues at a path of this site, as a navigation of this site: cookies with SameSite=Strict are not sent with redirects from another one. */
export const continuePage = (path: string): string =>
  page('Logged in', 'Continue to the page that you asked for.', { href: path, text: 'Continue' }, `<meta http-equiv="refresh" content="0;url=${escape(path)}">`)

/** Errors as a page for people, and as JSON for programs. */
export const loginErrors: ErrorFormat = (error, message, request) => {
  if (isPage(request)) {
    const text = error.code === 'LOGIN' ? 'This page needs a login.' : `${message[0]?.toUpperCase()}${message.slice(1)}.`
    return { contentType: pageHeaders['content-type'], body: page('Login', text, { href: '/', text: 'Start again' }) }
  }
  return { contentType: 'application/json', body: JSON.stringify({ error: error.code.toLowerCase(), message }) }
}

/** Whether a browser shows the response as a page: it says so, or a client without `Sec-Fetch-Mode` asks for HTML. */
export function isPage({ method, headers }: Exchange['request']): boolean {
  if (method !== 'GET') return false
  const mode = headers.get('sec-fetch-mode')
  return mode === undefined ? headers.get('accept')?.includes('text/html') === true : mode === 'navigate'
}
