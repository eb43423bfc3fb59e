import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'
import { frontPage } from '../front-page.ts'
import { markOutput } from '../console-blocks.ts'
import { adaptMarkdown, readTitle, slugify } from '../markdown.ts'
import { navigation } from '../navigation.ts'
import { search } from '../search.ts'

const root = join(import.meta.dirname, '../../..')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string; repository: { url: string } }
const repository = manifest.repository.url.replace(/^git\+/, '').replace(/\.git$/, '')
const toPath = (file: string): string => `/${file.replace(/(?:README)?\.md$/, '')}`

/** Set by `versions`: the versions that are published beside each other, and the path of the newest. */
const versions = (process.env['VERSIONS'] ?? '').split(' ').filter((version) => version !== '')
const siteRoot = `https://${process.env['HOST'] ?? 'localhost'}${process.env['SITE_ROOT'] ?? '/'}`

export default defineConfig({
  title: 'Proxy Service',
  description: 'A Kubernetes-native gateway for HTTP, gRPC, LLM and MCP traffic',
  lang: 'en',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  /** Path below which the site is published; with a slash at both ends. */
  base: process.env['BASE'] ?? '/',
  srcDir: '..',
  srcExclude: ['site/**'],
  outDir: '../../dist/docs',
  cleanUrls: false,
  rewrites: (page) => page.replace(/README\.md$/, 'index.md'),
  /** The README of `docs` is the front page here, and a list of pages on GitHub. */
  transformPageData: ({ relativePath }) => (relativePath === 'index.md' ? { frontmatter: frontPage } : undefined),
  markdown: {
    html: false,
    anchor: { slugify },
    languageAlias: { console: 'shellsession' },
    codeTransformers: [
      {
        name: 'console',
        code(code) {
          if (this.options.lang === 'console') markOutput(code, this.source)
        },
      },
    ],
    config: (md) => adaptMarkdown(md, repository),
  },
  vite: {
    plugins: [
      {
        name: 'vue-of-the-site',
        enforce: 'pre',
        // Pages are outside of the directory with the packages, so that Vite does not find Vue when it renders them to HTML.
        resolveId: (id, _importer, { ssr }) => (ssr === true && /^(?:vue|vue\/server-renderer|mermaid)$/.test(id) ? { id, external: true } : undefined),
      },
    ],
    build: { chunkSizeWarningLimit: 2000 },
  },
  themeConfig: {
    search,
    nav: [
      { text: 'Guide', link: '/guide/getting-started' },
      { text: 'Examples', link: '/guide/examples' },
      { text: 'Compare', link: '/guide/compare' },
      { text: 'Reference', link: '/reference/' },
      { text: 'Architecture', link: '/architecture' },
      {
        text: process.env['VERSION'] ?? `v${manifest.version}`,
        items: [
          ...versions.map((version) => ({ text: version, link: `${siteRoot}${version === 'main' ? '' : `${version}/`}`, target: '_self' })),
          { text: 'Changes', link: `${repository}/blob/main/CHANGELOG.md` },
          { text: 'Releases', link: `${repository}/releases` },
          { text: 'Contributing', link: `${repository}/blob/main/CONTRIBUTING.md` },
        ],
      },
    ],
    sidebar: navigation.map(({ text, pages }) => ({
      text,
      // What contributors read stays folded.
      collapsed: text === 'Design' || text === 'Performance notes',
      items: pages.map((page) => ({ text: readTitle(page), link: toPath(page) })),
    })),
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path`, text: 'Edit this page' },
  },
})
