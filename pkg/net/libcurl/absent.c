/* What libcurl's archive asks of libraries that are not linked: of protocols, encodings and logins that nothing here
 * speaks (cmake/CurlArchive.cmake). Shared, it would load them all, and what those need: 24 libraries.
 *
 * Four of them an HTTP server, or a name, can lead to: those fail, and libcurl says so. The rest nothing can lead to,
 * since requests are restricted to HTTP and HTTPS (CURLOPT_PROTOCOLS_STR), without cookies, and to a proxy's password
 * (CURLOPT_SOCKS5_AUTH): reaching one of them is a bug, and the program ends with a line that says so. */
#include <stdio.h>
#include <stdlib.h>

/* --- what is called when libcurl sets itself up --- */

int libssh2_init(int flags);
int libssh2_init(int flags)
{
    (void)flags;
    return 0;
}

void libssh2_exit(void);
void libssh2_exit(void)
{
}

/* --- what fails --- */

/* Transfer-Encoding: br, unasked, which libcurl 7.88 unpacks all the same; Content-Encoding it leaves alone, since
 * CURLOPT_ACCEPT_ENCODING is not set. NULL: no memory for it, see http_error.c. */
void *BrotliDecoderCreateInstance(void *allocate, void *release, void *arg);
void *BrotliDecoderCreateInstance(void *allocate, void *release, void *arg)
{
    (void)allocate;
    (void)release;
    (void)arg;
    return NULL;
}

/* Transfer-Encoding: zstd, likewise. */
void *ZSTD_createDStream(void);
void *ZSTD_createDStream(void)
{
    return NULL;
}

/* A name of a server that is not ASCII; it can be written in Punycode. */
enum { IDN2_NO_CODESET = -102 };
int idn2_lookup_ul(const char *name, char **out, int flags);
int idn2_lookup_ul(const char *name, char **out, int flags)
{
    (void)name;
    (void)flags;
    *out = NULL;
    return IDN2_NO_CODESET;
}

/* NULL: older than is asked for. */
const char *idn2_check_version(const char *least);
const char *idn2_check_version(const char *least)
{
    (void)least;
    return NULL;
}

/* --- what is never called --- */

/* A pointer to the name of a kind of names. */
extern const void *const GSS_C_NT_HOSTBASED_SERVICE;
const void *const GSS_C_NT_HOSTBASED_SERVICE = NULL;

static _Noreturn void absent(void)
{
    fputs("libcurl called a library that is not linked; ending, a restart loses nothing\n", stderr);
    abort();
}

#define ABSENT(name)                                                                                                   \
    void name(void);                                                                                                   \
    __attribute__((alias("absent"))) void name(void);

/* clang-format off */
/* SSH */
ABSENT(libssh2_version)
ABSENT(libssh2_agent_connect)
ABSENT(libssh2_agent_disconnect)
ABSENT(libssh2_agent_free)
ABSENT(libssh2_agent_get_identity)
ABSENT(libssh2_agent_init)
ABSENT(libssh2_agent_list_identities)
ABSENT(libssh2_agent_userauth)
ABSENT(libssh2_channel_free)
ABSENT(libssh2_channel_read_ex)
ABSENT(libssh2_channel_send_eof)
ABSENT(libssh2_channel_wait_closed)
ABSENT(libssh2_channel_wait_eof)
ABSENT(libssh2_channel_write_ex)
ABSENT(libssh2_hostkey_hash)
ABSENT(libssh2_knownhost_add)
ABSENT(libssh2_knownhost_checkp)
ABSENT(libssh2_knownhost_del)
ABSENT(libssh2_knownhost_free)
ABSENT(libssh2_knownhost_get)
ABSENT(libssh2_knownhost_init)
ABSENT(libssh2_knownhost_readfile)
ABSENT(libssh2_knownhost_writefile)
ABSENT(libssh2_scp_recv2)
ABSENT(libssh2_scp_send64)
ABSENT(libssh2_session_abstract)
ABSENT(libssh2_session_block_directions)
ABSENT(libssh2_session_callback_set)
ABSENT(libssh2_session_disconnect_ex)
ABSENT(libssh2_session_flag)
ABSENT(libssh2_session_free)
ABSENT(libssh2_session_handshake)
ABSENT(libssh2_session_hostkey)
ABSENT(libssh2_session_init_ex)
ABSENT(libssh2_session_last_errno)
ABSENT(libssh2_session_last_error)
ABSENT(libssh2_session_method_pref)
ABSENT(libssh2_session_set_blocking)
ABSENT(libssh2_sftp_close_handle)
ABSENT(libssh2_sftp_init)
ABSENT(libssh2_sftp_last_error)
ABSENT(libssh2_sftp_mkdir_ex)
ABSENT(libssh2_sftp_open_ex)
ABSENT(libssh2_sftp_read)
ABSENT(libssh2_sftp_readdir_ex)
ABSENT(libssh2_sftp_rename_ex)
ABSENT(libssh2_sftp_rmdir_ex)
ABSENT(libssh2_sftp_seek64)
ABSENT(libssh2_sftp_shutdown)
ABSENT(libssh2_sftp_stat_ex)
ABSENT(libssh2_sftp_statvfs)
ABSENT(libssh2_sftp_symlink_ex)
ABSENT(libssh2_sftp_unlink_ex)
ABSENT(libssh2_sftp_write)
ABSENT(libssh2_userauth_authenticated)
ABSENT(libssh2_userauth_keyboard_interactive_ex)
ABSENT(libssh2_userauth_list)
ABSENT(libssh2_userauth_password_ex)
ABSENT(libssh2_userauth_publickey_fromfile_ex)
/* LDAP */
ABSENT(ber_bvfree)
ABSENT(ber_free)
ABSENT(ber_memfree)
ABSENT(ber_memvfree)
ABSENT(ber_sockbuf_add_io)
ABSENT(ldap_abandon_ext)
ABSENT(ldap_err2string)
ABSENT(ldap_free_urldesc)
ABSENT(ldap_get_attribute_ber)
ABSENT(ldap_get_dn_ber)
ABSENT(ldap_get_option)
ABSENT(ldap_init_fd)
ABSENT(ldap_memfree)
ABSENT(ldap_msgfree)
ABSENT(ldap_msgtype)
ABSENT(ldap_parse_result)
ABSENT(ldap_parse_sasl_bind_result)
ABSENT(ldap_pvt_url_scheme2proto)
ABSENT(ldap_result)
ABSENT(ldap_sasl_bind)
ABSENT(ldap_search_ext)
ABSENT(ldap_set_option)
ABSENT(ldap_start_tls)
ABSENT(ldap_unbind_ext)
ABSENT(ldap_url_parse)
/* RTMP */
ABSENT(RTMP_Alloc)
ABSENT(RTMP_Close)
ABSENT(RTMP_Connect1)
ABSENT(RTMP_ConnectStream)
ABSENT(RTMP_Free)
ABSENT(RTMP_Init)
ABSENT(RTMP_Read)
ABSENT(RTMP_SetBufferMS)
ABSENT(RTMP_SetupURL)
ABSENT(RTMP_Write)
/* Kerberos, by GSS-API */
ABSENT(gss_import_name)
ABSENT(gss_delete_sec_context)
ABSENT(gss_display_name)
ABSENT(gss_display_status)
ABSENT(gss_init_sec_context)
ABSENT(gss_inquire_context)
ABSENT(gss_release_buffer)
ABSENT(gss_release_name)
ABSENT(gss_unwrap)
ABSENT(gss_wrap)
/* cookies of public suffixes */
ABSENT(psl_get_version)
ABSENT(psl_builtin)
ABSENT(psl_free)
ABSENT(psl_is_cookie_domain_acceptable)
ABSENT(psl_latest)
/* IDN */
ABSENT(idn2_free)
/* Brotli */
ABSENT(BrotliDecoderVersion)
ABSENT(BrotliDecoderDecompressStream)
ABSENT(BrotliDecoderDestroyInstance)
ABSENT(BrotliDecoderGetErrorCode)
/* Zstandard */
ABSENT(ZSTD_versionNumber)
ABSENT(ZSTD_decompressStream)
ABSENT(ZSTD_freeDStream)
ABSENT(ZSTD_isError)
/* clang-format on */
