/**
 * Settings of LiteLLM, by section, whose loss opens nothing: those that add features, route, retry, cache, record, or admit more requests. `*` at the end stands
 * for any text. The import takes all other settings for protective, also those of later versions.
 */
export const harmlessSettings = {
  file: names(`assistant_settings credential_list files_settings finetune_settings search_tools vector_store_registry`),
  general_settings: names(`
    alert_to_webhook_url alert_types alerting alerting_args alerting_threshold allow_client_side_credentials allow_requests_on_db_unavailable
    background_health_check* cancel_on_disconnect completion_model coordination_redis custom_key_generate database_connection_pool_limit
    database_connection_timeout database_connect_timeout database_disable_prepared_statements database_extra_connection_params database_socket_timeout
    disable_adding_master_key_hash_to_db disable_auto_add_proxy_admin_to_teams disable_budget_reservation disable_master_key_return
    disable_prisma_schema_update disable_reset_budget disable_responses_id_security disable_retry_on_max_parallel_request_limit_error disable_spend_logs
    disable_spend_updates embedding_model enable_public_model_hub forward_client_headers_to_llm_api forward_openai_org_id health_check_* image_generation_model
    litellm_license maximum_autorouter_session_retention_period maximum_health_check_retention_period maximum_spend_logs_* model_list_healthy_only
    moderation_model otel pass_through_endpoints pass_through_request_timeout plugins proxy_batch_polling_interval proxy_batch_write_at
    proxy_budget_rescheduler_max_time proxy_budget_rescheduler_min_time proxy_config_reload_interval_seconds scheduled_job_stagger spend_report_frequency
    store_prompts_in_spend_logs supported_db_objects ui_access_mode use_client_credentials_pass_through_routes use_spend_logs_partitioning
    user_api_key_cache_ttl user_header_mappings user_header_name user_mcp_management_mode`),
  litellm_settings: names(`
    LITELLM_DISABLE_STOP_SEQUENCE_LIMIT allowed_fails cache cache_params content_policy_fallbacks context_window_fallbacks cooldown_time default_fallbacks
    disable_add_transform_inline_image_block disable_copilot_system_to_assistant disable_end_user_cost_tracking*
    disable_hf_tokenizer_download drop_params enable_json_schema_validation enable_key_alias_format_validation enable_preview_features fallbacks force_ipv4
    json_logs langfuse_default_tags max_ui_session_budget mcp_aliases modify_params num_retries request_timeout service_callbacks set_verbose telemetry
    use_chat_completions_url_for_anthropic_messages`),
  router_settings: names(`
    alerting_config allowed_fails allowed_fails_policy cache_kwargs cache_responses caching_groups client_ttl content_policy_fallbacks context_window_fallbacks
    cooldown_time debug_level default_fallbacks default_priority deployment_affinity_ttl_seconds disable_cooldowns fallbacks ignore_invalid_deployments
    max_fallbacks max_retries model_group_affinity_config model_group_alias model_group_retry_policy num_retries polling_interval redis_* retry_after
    retry_policy router_general_settings routing_groups routing_strategy routing_strategy_args search_tools set_verbose stream_timeout timeout weights`),
  litellm_params: names(`
    additional_drop_params allow_client_keepalive_override allowed_fails base_model cache_creation_input_token_cost* cache_read_input_token_cost*
    configurable_clientside_auth_params cooldown_time drop_params input_cost_per_* keepalive_seconds litellm_trace_id max_retries
    merge_reasoning_content_in_choices num_retries order organization output_cost_per_* stream stream_timeout timeout use_chat_completions_api
    use_in_pass_through weight`),
  model_info: names(`
    base_model cache_creation_input_token_cost* cache_read_input_token_cost* cost_per_ptu_per_hour created_at created_by db_model description
    disable_background_health_check discoverable health_check_* id input_cost_per_* internal_router_model litellm_provider max_input_tokens max_output_tokens
    max_tokens mode output_cost_per_* output_vector_size ptu_count ptu_effective_from ptu_effective_to supported_openai_params supports_* updated_at updated_by`),
  mcp_servers: names(`
    alias allow_all_keys byok_api_key_help_url byok_description created_at delegate_auth_to_upstream description extra_headers instructions mcp_info server_id
    server_name spec_version timeout tool_name_to_description tool_name_to_display_name updated_at`),
} as const

/** Protective settings that are off with the value false. */
export const switches = {
  general_settings: names(`
    allow_user_auth default_team_disabled enable_jwt_auth enable_oauth2_auth enable_oauth2_proxy_auth enforce_user_param infer_model_from_keys
    reject_clientside_metadata_tags use_x_forwarded_for`),
  litellm_settings: names(`redact_user_api_key_info turn_off_message_logging`),
  router_settings: names(`enable_pre_call_checks enable_tag_filtering`),
} as const

/** Where LiteLLM keeps keys of clients. Without them, only the master key admits requests. */
export const keyStores = names(`
  database_args database_type database_url key_management_settings key_management_system store_model_in_db use_azure_key_vault use_google_kms`)

function names(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}
