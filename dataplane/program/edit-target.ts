import { basename } from 'node:path'
import type { ProcessConfig } from '#gen/config/types.ts'
import { FileEdits } from '../config/edit/file-edits.ts'
import type { EditChange, EditorOutput } from '../config/edit/types.ts'
import type { EditTarget, ReadyEdit } from '../management/console/edits/edits.ts'
import type { HostPort } from '../management/admin/listen.ts'
import type { ProcessSettings } from './settings.ts'

interface EditTargetOptions {
  readonly file: string | undefined
  readonly admin: HostPort & { readonly hasToken: boolean }
  readonly processConfig: ProcessConfig
  readonly settings: Pick<ProcessSettings, 'xdsAddress' | 'isInPod'>
}

/** The config file, if the console may change it, or why it may not. */
export function editTargetOf({ file, admin, processConfig, settings }: EditTargetOptions): EditTarget | string {
  const { edits } = processConfig.management ?? {}
  if (settings.xdsAddress !== undefined || file === undefined) return 'the config of this data plane comes from an operator; change the manifests'
  if (edits === false) return 'config.management.edits is false'
  if (settings.isInPod && edits !== true) return 'edits are off in pods; config.management.edits: true permits them'
  if (!isLoopback(admin.host) && !admin.hasToken)
    return `the management port listens on ${admin.host}, and needs no token; set ADMIN_TOKEN, or config.adminAddr to a loopback address`
  const writer = new FileEdits(file)
  const target = basename(file)
  return {
    who: () => `management port${admin.hasToken ? ', with ADMIN_TOKEN' : ''}`,
    async read() {
      const { revision, fields = [], keys = [], problems } = await writer.read()
      return {
        enabled: true,
        reason: null,
        target,
        revision,
        fields: fields.map((field) => ({ ...field, object: null, path: [...field.path] })),
        keys: keys.map(({ secret, name, entries }) => ({
          id: String(secret),
          name,
          entries: entries.map((entry) => ({ ...entry, metadata: { ...entry.metadata } })),
        })),
        problems: [...problems],
      }
    },
    preview: async (edit) => toPreview(await writer.preview(edit.revision, edit.changes.map(toFileChange))),
    async apply(edit) {
      const output = await writer.apply(edit.revision, edit.changes.map(toFileChange))
      return { ...toPreview(output), revision: output.revision, backup: output.backup === undefined ? null : basename(output.backup) }
    },
  }
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || host.startsWith('127.')

const toPreview = ({ diff = [], problems, warnings }: EditorOutput) => ({ diff: [...diff], problems: [...problems], warnings: [...warnings] })

function toFileChange(change: ReadyEdit['changes'][number]): EditChange {
  if (!('key' in change)) return { path: change.path, text: change.text }
  const { list, ...key } = change.key
  return { key: { ...key, secret: Number(list), keyHash: change.keyHash } }
}
